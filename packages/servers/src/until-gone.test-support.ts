import { setTimeout as pause } from 'node:timers/promises'
import { processFacts } from './machine.ts'

/** Waits until a process has ended; one that is not our own child can only be polled. */
export async function untilGone(pid: number): Promise<void> {
  while ((await processFacts(pid)) !== undefined) await pause(10)
}
