import { readFile } from 'node:fs/promises'

/** A process's CPU time so far in ms, and its resident memory in bytes. */
export interface Usage {
  cpuMs: number
  rssBytes: number
}

/** Linux reports CPU time in ticks of 10 ms, also if its own clock ticks at another rate. */
const TICK_MS = 10

/** The usage of a live process; undefined if it does not exist. */
export async function usageOf(pid: number): Promise<Usage | undefined> {
  const [stat = '', status = ''] = await Promise.all(
    ['stat', 'status'].map((name) => readFile(`/proc/${pid}/${name}`, 'utf8')),
  ).catch(() => [])
  if (stat === '') return undefined
  // The name is in parentheses and may itself contain spaces; after it the state is field 3, and
  // times are 14 and 15.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  const kilobytes = Number(/^VmRSS:\s+(\d+)/m.exec(status)?.[1] ?? 0)
  return { cpuMs: (Number(fields[11]) + Number(fields[12])) * TICK_MS, rssBytes: kilobytes * 1024 }
}
