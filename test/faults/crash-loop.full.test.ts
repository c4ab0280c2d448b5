import assert from 'node:assert/strict'
import { randomInt } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { test } from 'vitest'
import { assertStored } from '../support/assert-stored.ts'
import { statusesOf } from '../support/ledger.ts'
import { openOperator } from '../support/open-operator.ts'
import { openQueue } from '../support/open-queue.ts'
import { postSteadily } from '../support/post-steadily.ts'
import { createRandom, type Random } from '../support/random.ts'
import { startSluice, type TestSluice } from '../support/start-sluice.ts'
import { BUSY_MS, until } from '../support/until.ts'

const WORKERS = 2
const SECONDS = 20
/** How long a worker lives, in ms. */
const LIFE_MS = [100, 2_000] as const

test(`workers that all crash again and again for ${SECONDS} s lose nothing, no job fails for it, and the verdict names the loop`, {
  timeout: SECONDS * 1000 + 120_000,
}, async (t) => {
  const seed = randomInt(2 ** 32)
  const random = createRandom(seed)
  await t.annotate(`seed ${seed}`)
  const sluice = await startSluice(t, { workers: 0 })
  const { queue, bulk, drained } = openQueue(t, sluice.settings)
  const load = postSteadily(t, sluice, {
    callers: 8,
    prefer: () => random.pick(['wait=2', 'respond-async']),
  })
  const { readVerdict } = await openOperator(sluice)
  /** What the verdict says about workers, in one finding at most. */
  async function found(): Promise<string | undefined> {
    const about = (await readVerdict()).filter((text) => /worker/i.test(text))
    assert(about.length <= 1, about.join())
    return about[0]
  }
  const end = performance.now() + SECONDS * 1000
  const crashes = await Promise.all(
    Array.from({ length: WORKERS }, () => crashUntil(end, sluice, random)),
  )
  const all = crashes.reduce((sum, some) => sum + some, 0)
  const [, times, lived] =
    /^Workers died (\d+) times in \d+ s; the last one lived (\d+) s/.exec((await found()) ?? '') ??
    []
  assert(Number(times) >= 3 && Number(times) <= all, `${times} of ${all}`)
  assert(Number(lived) <= 2 + BUSY_MS / 1_000, lived)

  await Promise.all(Array.from({ length: WORKERS }, () => sluice.startWorker()))
  await until('no worker is named', async () => (await found()) === undefined)
  // On a slow machine no worker may have lived long enough to answer one.
  await load.moreStored(1)
  const posted = await load.stop()
  await drained()
  await t.annotate(`${crashes.join(' and ')} crashes, ${posted.length} posts`)
  assert.deepEqual([await queue.getFailedCount(), await bulk.getFailedCount()], [0, 0])
  assert.deepEqual(statusesOf(posted), [200, 202])
  await assertStored(sluice.db, posted, { afterCrash: true })
})

/**
 * Starts one worker after the other and kills it in the middle of its work. Returns the number of
 * crashes.
 */
async function crashUntil(
  end: number,
  { startWorker }: TestSluice,
  random: Random,
): Promise<number> {
  let crashes = 0
  for (; performance.now() < end; crashes++) {
    const worker = await startWorker()
    await pause(random.between(...LIFE_MS))
    worker.signal('SIGKILL')
    await worker.ended
  }
  return crashes
}
