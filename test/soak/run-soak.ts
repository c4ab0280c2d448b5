// Puts faults on a running Sluice under a steady load, and compares the ledger with the store at
// the end.
import { setTimeout as pause } from 'node:timers/promises'
import type { TestScope } from '@sluice/test-support'
import { readDifferences } from '../support/assert-stored.ts'
import type { Differences } from '../support/ledger.ts'
import { openQueue } from '../support/open-queue.ts'
import { postSteadily } from '../support/post-steadily.ts'
import type { Posted } from '../support/post-thread.ts'
import { createRandom } from '../support/random.ts'
import { injectFault } from './inject-fault.ts'
import { describeFault, type Fault, type Part } from './schedule.ts'
import { noteDeaths, openWorld, type World } from './world.ts'

export interface SoakReport {
  posted: readonly Posted[]
  differences: Differences
  /** Jobs that failed for good. */
  failedJobs: number
  violations: readonly string[]
}

const CALLERS = 12
/**
 * How long the last jobs may take once all parts work again: locks expire, and tries have pauses.
 */
const DRAINED_WITHIN_MS = 60_000
/**
 * AOF everysec may lose the last second, and a request may take up to two before Redis has it. In
 * ms.
 */
const MAY_BE_LOST_MS = 3_100
/** How many lines of each process's log are kept: the first ones name its ports. */
const FIRST_LINES = 100
const LAST_LINES = 1_000

/** @param say receives a line as each fault begins. */
export async function runSoak(
  t: TestScope,
  { seed, seconds, faults }: { seed: number; seconds: number; faults: readonly Fault[] },
  say: (line: string) => void,
): Promise<SoakReport> {
  const world = await openWorld(t)
  const view = openQueue(t, world.sluice.settings)
  const random = createRandom(seed)
  const load = postSteadily(
    t,
    { url: world.balancer.url, key: world.sluice.key },
    {
      callers: CALLERS,
      restMs: 0,
      prefer: () => random.pick([undefined, 'wait=2', 'respond-async']),
    },
  )
  const began = performance.now()
  await injectAll(world, faults, say)
  await pause(Math.max(0, began + seconds * 1000 - performance.now()))
  say('all faults are over')

  const posted = await load.stop()
  await view.drained(DRAINED_WITHIN_MS).catch((error) => world.violations.push(String(error)))
  noteDeaths(world)
  const failed = await Promise.all([view.queue.getFailedCount(), view.bulk.getFailedCount()])
  return {
    posted,
    differences: await readDifferences(world.sluice.db, excuseLastSecond(posted, world), {
      afterCrash: true,
    }),
    failedJobs: failed.reduce((sum, count) => sum + count, 0),
    violations: world.violations,
  }
}

/** Faults of one part follow each other; those of different parts may overlap. */
async function injectAll(
  world: World,
  faults: readonly Fault[],
  say: (line: string) => void,
): Promise<void> {
  const began = performance.now()
  const lastOf = new Map<Part, Promise<void>>()
  for (const fault of faults) {
    await pause(Math.max(0, began + fault.at * 1000 - performance.now()))
    const before = lastOf.get(fault.part)
    lastOf.set(fault.part, injectAfter(before, fault))
    forgetOldLines(world)
  }
  await Promise.all(lastOf.values())

  async function injectAfter(before: Promise<void> | undefined, fault: Fault): Promise<void> {
    await before
    say(describeFault(fault))
    await injectFault(world, fault).catch((error) =>
      world.violations.push(`${describeFault(fault)}: ${error}`),
    )
  }
}

function forgetOldLines({ apis, workers }: World): void {
  for (const { log } of [...apis.map(({ api }) => api), ...workers])
    log.splice(FIRST_LINES, Math.max(0, log.length - FIRST_LINES - LAST_LINES))
}

/**
 * What Redis accepted in its last second before a kill may be lost, unless it is stored already.
 */
function excuseLastSecond(posted: readonly Posted[], { redisKills }: World): Posted[] {
  const mayBeLost = ({ sentAt }: Posted) =>
    redisKills.some((at) => sentAt < at && sentAt > at - MAY_BE_LOST_MS)
  return posted.map((answer) =>
    answer.status !== 200 && mayBeLost(answer) ? { ...answer, status: 'none' } : answer,
  )
}
