// Asks this machine about its processes.
import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { promisify } from 'node:util'

const run = promisify(execFile)

/**
 * Returns the parent, the command line and the bytes in RAM of a process. Returns undefined if it
 * has ended or is a zombie.
 */
export function processFacts(pid: number, platform: NodeJS.Platform = process.platform) {
  return (platform === 'linux' ? fromProc(pid) : fromPs(pid)).catch(() => undefined)
}

/** Reads `/proc`, because slim Linux images have no `ps`. */
async function fromProc(pid: number) {
  const [status, command] = await Promise.all(
    ['status', 'cmdline'].map((name) => readFile(`/proc/${pid}/${name}`, 'utf8')),
  )
  const field = (name: string) => new RegExp(`^${name}:\\s+(\\w+)`, 'm').exec(status ?? '')?.[1]
  return facts(field('State'), field('PPid'), field('VmRSS'), command?.replaceAll('\0', ' '))
}

async function fromPs(pid: number) {
  const columns = ['stat=', 'ppid=', 'rss=', 'command='].flatMap((column) => ['-o', column])
  const { stdout } = await run('ps', [...columns, '-p', String(pid)])
  const [, state, parent, kibibytes, command] =
    /^\s*(\S+)\s+(\d+)\s+(\d+)\s+(.*)$/m.exec(stdout) ?? []
  return facts(state, parent, kibibytes, command)
}

function facts(state?: string, parent?: string, kibibytes?: string, command?: string) {
  if (state === undefined || command === undefined || state.startsWith('Z')) return undefined
  return { parent: Number(parent), command: command.trim(), bytes: Number(kibibytes) * 1024 }
}
