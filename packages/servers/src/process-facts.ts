import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { promisify } from 'node:util'

const run = promisify(execFile)

export interface ProcessFacts {
  readonly parent: number
  /** Its command line. */
  readonly command: string
}

/** What the operating system knows of a live process; undefined where there is none, or only a dead one that nobody has waited for. */
export function processFacts(
  pid: number,
  platform: NodeJS.Platform = process.platform,
): Promise<ProcessFacts | undefined> {
  return platform === 'linux' ? fromProc(pid) : fromPs(pid)
}

/** Slim Linux images have no `ps`. */
async function fromProc(pid: number): Promise<ProcessFacts | undefined> {
  try {
    const [stat, command] = await Promise.all([
      readFile(`/proc/${pid}/stat`, 'utf8'),
      readFile(`/proc/${pid}/cmdline`, 'utf8'),
    ])
    // The name stands in parentheses and may itself hold spaces and parentheses.
    const [state, parent] = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return facts(state, parent, command.replaceAll('\0', ' '))
  } catch {
    return undefined
  }
}

async function fromPs(pid: number): Promise<ProcessFacts | undefined> {
  try {
    const { stdout } = await run('ps', ['-o', 'stat=', '-o', 'ppid=', '-o', 'command=', '-p', String(pid)])
    const [, state, parent, command] = /^\s*(\S+)\s+(\d+)\s+(.*)$/m.exec(stdout) ?? []
    return facts(state, parent, command)
  } catch {
    return undefined
  }
}

function facts(state: string | undefined, parent: string | undefined, command: string | undefined) {
  if (state === undefined || command === undefined || state.startsWith('Z')) return undefined
  return { parent: Number(parent), command: command.trim() }
}
