// Stops a server that uses more memory than it may, so that it is restarted before it fills the machine.
import { setTimeout as pause } from 'node:timers/promises'
import type { LaunchedProcess } from './launch-process.ts'
import { residentBytes } from './machine.ts'

/** How often the memory is read, in ms. A server that grows by a gigabyte a second exceeds its bound by a quarter of one. */
const LOOK_MS = 250

/**
 * Stops a process in order once it uses more than `maxBytes` of memory. Its address space is not bounded instead (`ulimit -v`): a server that gets no
 * memory may stop answering without ending.
 *
 * @returns how the process ended, with the memory as the reason if that was why.
 */
export async function boundMemory(
  { pid, stop }: Pick<LaunchedProcess, 'pid' | 'stop'>,
  ended: Promise<string>,
  maxBytes: number,
): Promise<string> {
  let end: string | undefined
  void ended.then((how) => {
    end = how
  })
  while (end === undefined) {
    const bytes = (await residentBytes(pid)) ?? 0
    if (bytes > maxBytes && end === undefined) {
      await stop()
      return `stopped, because it used ${megabytes(bytes)} of memory and may use ${megabytes(maxBytes)}`
    }
    await Promise.race([ended, pause(LOOK_MS, undefined, { ref: false })])
  }
  return ended
}

function megabytes(bytes: number): string {
  return `${Math.round(bytes / 1024 / 1024)} MiB`
}
