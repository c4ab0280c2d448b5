import assert from 'node:assert/strict'
import { setImmediate } from 'node:timers/promises'
import {
  createBatchStore,
  isLive,
  type PostRequest,
  processRuntime,
  type Runtime,
  type StoreCommands,
} from '@sluice/store'
import { it } from 'vitest'
import { createMemoryDatabase } from './explorer/memory-database.ts'
import { requestOf } from './support/histories.ts'
import { interruptedBefore } from './support/interrupted.ts'
import { quickToSum } from './support/open-store.ts'
import { storeOnce } from './support/store-all.ts'

// Processes that write one thread at the same time do not stop each other, nor the threads beside
// it.

let places = 0
function append(externalId = 'hot'): PostRequest {
  places += 1
  const quotes = [{ externalId: `q${places}`, text: 'two words' }]
  return requestOf({ source: { service: 'slack', externalId, title: 'title' }, quotes }, places)
}

/**
 * A process that hangs before it writes quotes. Resolves when it has opened or reserved the source.
 */
async function hangBeforeQuotes(
  commands: StoreCommands,
  request: PostRequest,
  runtime: Runtime,
): Promise<void> {
  const hanging = Promise.withResolvers<void>()
  const insert: StoreCommands['insert'] = (name, documents) => {
    if (name !== 'quotes') return commands.insert(name, documents)
    hanging.resolve()
    return new Promise(() => {})
  }
  void createBatchStore({ ...commands, insert }, runtime).store([request])
  await hanging.promise
}

let ticks = 0
/**
 * A process that dies while it sums: it does not wait for other writers, and never renews its
 * reservation. Its clock is a minute ahead.
 */
const dying: Runtime = {
  ...processRuntime,
  now: () => Date.now() + 60_000,
  monotonic: () => {
    ticks += 1_100
    return ticks
  },
  delay: () => new Promise(() => {}),
}

/**
 * Two processes die with the same request: the first one during its quotes, the second one while it
 * sums the thread.
 */
async function dieAmidSum(commands: StoreCommands): Promise<void> {
  const request = append()
  await hangBeforeQuotes(commands, request, dying)
  await hangBeforeQuotes(commands, { ...request, redelivered: true }, dying)
}

it('a process whose opening was refused ends its batch although another process sums the thread', async () => {
  const { commands, all } = createMemoryDatabase()
  await storeOnce(commands, [append()])
  const isOpening = (kind: string, name: string) => kind === 'update' && name === 'sources'
  const store = createBatchStore(interruptedBefore(commands, isOpening, () => dieAmidSum(commands)))
  const [hot, cold] = [append(), append('cold')]
  const writers = new Set(all('writers').map(({ _id }) => _id))
  const answers = await store.store([hot, cold])
  assert.deepEqual([...answers.keys()], [cold.id])
  await store.settle()
  const own = all('writers').filter(({ _id, watermark }) => !writers.has(_id) && watermark > 0)
  assert.equal(own.length, 1, 'nobody who sums has to wait for the batch')
})

it('a process that died while it summed a thread keeps others from it for a second, even if its clock is a minute ahead', async () => {
  const { commands, all } = createMemoryDatabase()
  await dieAmidSum(commands)
  const hasReservation = () =>
    all('sources')[0]?.meta.tokens?.some(({ excludes }) => excludes !== undefined)
  assert(hasReservation())
  let passed = 0
  const store = createBatchStore(commands, {
    ...processRuntime,
    monotonic: () => performance.now() + passed,
  })
  const next = append()
  assert.equal((await store.store([next])).size, 0)
  passed = 1_000
  assert.equal((await store.store([next])).size, 1)
  assert(hasReservation())
})

/** A clock that only the test moves. A delay ends when its time has passed by this clock. */
function createClock() {
  const began = Date.now()
  let passed = 0
  let delays: { until: number; end: () => void }[] = []
  const runtime: Runtime = {
    ...processRuntime,
    now: () => began + passed,
    monotonic: () => passed,
    delay: (ms) => new Promise((end) => delays.push({ until: passed + ms, end })),
  }
  return {
    runtime,
    /** Resolves when all that the ended delays lead to has happened in memory. */
    async pass(ms: number): Promise<void> {
      passed += ms
      const ended = delays.filter(({ until }) => until <= passed)
      delays = delays.filter(({ until }) => until > passed)
      for (const { end } of ended) end()
      await setImmediate()
    },
  }
}

it('a process keeps others from a thread as long as it sums, by renewing its reservation', async () => {
  const { commands } = createMemoryDatabase()
  const { runtime, pass } = createClock()
  const interrupted = append()
  await hangBeforeQuotes(commands, interrupted, dying)
  const [summing, summed] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  async function sumQuotes(ids: readonly string[]) {
    summing.resolve()
    await summed.promise
    return commands.sumQuotes(ids)
  }
  const storing = createBatchStore({ ...commands, sumQuotes }, runtime).store([
    { ...interrupted, redelivered: true },
  ])
  await summing.promise
  const other = createBatchStore(commands, runtime)
  const next = append()
  for (let ms = 0; ms < 5_000; ms += 250) {
    assert.equal((await other.store([next])).size, 0, `another process writes after ${ms} ms`)
    await pass(250)
  }
  summed.resolve()
  assert.equal((await storing).size, 1)
  assert.equal((await other.store([next])).size, 1)
})

it('a process reads a thread of its last batch without waiting for the recount of another one', async () => {
  const { commands, all } = createMemoryDatabase()
  const interrupted = append()
  await hangBeforeQuotes(commands, interrupted, dying)
  await storeOnce(commands, [append('cold')])
  // While the process writes the quotes of both threads, another one sums one of them.
  const isQuotes = (kind: string, name: string) => kind === 'insert' && name === 'quotes'
  const recounting = Promise.withResolvers<void>()
  const interruptedOnce = interruptedBefore(commands, isQuotes, () =>
    storeOnce(commands, [{ ...interrupted, redelivered: true }], quickToSum),
  )
  const sumQuotes: StoreCommands['sumQuotes'] = () => {
    recounting.resolve()
    return new Promise(() => {})
  }
  const store = createBatchStore({ ...interruptedOnce, sumQuotes })
  assert.equal((await store.store([append(), append('cold')])).size, 2)
  void store.settle()
  await recounting.promise
  const next = append('cold')
  assert.equal((await store.store([next])).get(next.id)?.quotes[0]?.outcome, 'created')
  assert.equal(
    all('sources')
      .filter(isLive)
      .find(({ externalId }) => externalId === 'cold')?.quoteCount,
    3,
  )
})
