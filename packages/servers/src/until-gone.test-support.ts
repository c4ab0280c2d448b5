import { setTimeout as pause } from 'node:timers/promises'
import { processFacts } from './machine.ts'

/** Waits until a process that is not our own child has ended: only asking tells. */
export async function untilGone(pid: number): Promise<void> {
  while ((await processFacts(pid)) !== undefined) await pause(10)
}
