import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { promisify } from 'node:util'

const run = promisify(execFile)

/** A process's CPU time so far in ms, and its resident memory in bytes. */
export interface Usage {
  cpuMs: number
  rssBytes: number
}

/** Linux reports CPU time in ticks of 10 ms, whatever its own clock. */
const TICK_MS = 10

/** The usage of a live process; undefined if it does not exist. */
export async function usageOf(
  pid: number,
  platform: NodeJS.Platform = process.platform,
): Promise<Usage | undefined> {
  return (platform === 'linux' ? fromProc(pid) : fromPs(pid)).catch(() => undefined)
}

async function fromProc(pid: number): Promise<Usage> {
  const [stat, status] = await Promise.all([
    readFile(`/proc/${pid}/stat`, 'utf8'),
    readFile(`/proc/${pid}/status`, 'utf8'),
  ])
  // The name is in parentheses and may itself contain spaces; after it the state is field 3, and
  // times are 14 and 15.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  const kilobytes = Number(/^VmRSS:\s+(\d+)/m.exec(status)?.[1] ?? 0)
  return { cpuMs: (Number(fields[11]) + Number(fields[12])) * TICK_MS, rssBytes: kilobytes * 1024 }
}

async function fromPs(pid: number): Promise<Usage> {
  const { stdout } = await run('ps', ['-o', 'time=', '-o', 'rss=', '-p', String(pid)])
  const [time = '', kilobytes] = stdout.trim().split(/\s+/)
  return { cpuMs: parseCpuTime(time), rssBytes: Number(kilobytes) * 1024 }
}

/** `ps` gives `[[days-]hours:]minutes:seconds[.hundredths]`. */
function parseCpuTime(text: string): number {
  const [clock = '', days = '0'] = text.split('-').reverse()
  const seconds = clock.split(':').reduce((sum, part) => sum * 60 + Number(part), 0)
  return (Number(days) * 86_400 + seconds) * 1000
}
