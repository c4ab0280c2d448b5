import { readFile } from 'node:fs/promises'

/**
 * Returns the memory that a process occupies now (`rss`), or with `VmHWM` the most that it ever
 * did.
 */
export async function residentBytes(
  pid: number,
  field: 'VmRSS' | 'VmHWM' = 'VmRSS',
): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8')
  return Number(new RegExp(`^${field}:\\s+(\\d+) kB$`, 'm').exec(status)?.[1]) * 1024
}
