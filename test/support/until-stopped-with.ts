// Catches a worker in the middle of its work, for the three tests that take its jobs away then.
import type { StartedProcess } from '@sluice/test-support'
import { until } from './until.ts'

/** Stops a process by SIGSTOP at a moment when at least so many jobs are active. */
export async function untilStoppedWith(
  worker: StartedProcess,
  jobs: number,
  active: () => Promise<number>,
) {
  await until(`the worker is stopped with ${jobs} active jobs`, async () => {
    worker.signal('SIGSTOP')
    const caught = (await active()) >= jobs
    if (!caught) worker.signal('SIGCONT')
    return caught
  })
}
