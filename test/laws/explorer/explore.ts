import assert from 'node:assert/strict'
import {
  type BatchStore,
  CommandFailedError,
  createBatchStore,
  PausedTooLongError,
  type PostRequest,
  type Runtime,
  repairSources,
  type StoreAnswer,
  type StoreRequest,
} from '@sluice/store'
import { sourceIdOfRequest } from '@sluice/store/ids'
import { MongoNetworkError } from 'mongodb'
import { assertRemoved, DeletionLaw } from './deletion-law.ts'
import type { Delivery, History, RepairPlan, WorkerPlan } from './history.ts'
import { OutcomeLaw } from './outcome-law.ts'
import { assertPositions } from './position-law.ts'
import type { Process } from './process.ts'
import { Simulation } from './simulation.ts'
import { assertAnswerIsStored, assertStored, visibleThreads, withoutTotals } from './stored-law.ts'
import { assertAgreement, assertTotals, assertWatermarks, openTokens } from './totals-law.ts'

// Runs one history on the real store and checks the laws.

/** Nobody waits longer for another's sum on a hot thread. */
const LONGEST_WAIT_MS = 2_000

/** After this time a repair removes a dead writer's tokens, for every clock. */
const LONG_MS = 200_000

/** After this time a token is stale for every clock. In ms. */
const STALE_MS = 40_000

/**
 * @param trace gets a line for each command that takes effect.
 * @throws {AssertionError} if a law is broken.
 */
export async function explore(history: History, trace?: (line: string) => void): Promise<void> {
  const simulation: Simulation = new Simulation({ ...history, onWrite, trace })
  const positions = new Map<string, string>()
  const outcomes = new OutcomeLaw(simulation.database)
  const deletions = new DeletionLaw(simulation.database, history.requests)
  const watermarks = new Map<string, number>()
  function onWrite(): void {
    assertTotals(simulation)
    if (history.removal === undefined) assertWatermarks(simulation, watermarks)
    assertPositions(simulation, positions)
    outcomes.watch()
    deletions.watch()
  }
  const run = new Run(simulation, outcomes, deletions, history)
  const work = history.workers.flatMap((plan) => run.startWorker(plan))
  const repairs = history.repairs.map((plan) => run.repairLater(plan))
  await simulation.runUntil(Promise.all([...work, ...repairs]))
  simulation.endMishaps()
  await run.endJobs()
  await simulation.runOut()
  const failed = history.requests.filter(({ id }) => !run.answered.has(id))
  if (!run.hasCrashed) assertAgreement(simulation)
  outcomes.assertCreatedOnce(history.requests, failed)
  const reposts = await run.repostLast(failed)
  // What a redaction changes depends on what is stored before it.
  if (!history.requests.some((request) => 'deletes' in request && request.deletes.redacts))
    assertStored(simulation, [...history.requests, ...reposts], failed)
  await run.assertRepaired()
}

class Run {
  readonly simulation: Simulation
  readonly #outcomes: OutcomeLaw
  readonly #deletions: DeletionLaw
  readonly requests: readonly StoreRequest[]
  /** The requests of which a delivery succeeded. */
  readonly answered = new Set<string>()
  /** The number of deliveries of each request. */
  readonly #deliveries = new Map<string, number>()
  /** The requests of which Redis lost the record of a delivery. */
  readonly #forgotten = new Set<string>()
  readonly #hopeless: readonly number[]
  readonly #isTimed: boolean
  /** A command takes effect twice, and so may store a quote after its removal. */
  readonly #repeats: boolean
  hasCrashed: boolean

  constructor(
    simulation: Simulation,
    outcomes: OutcomeLaw,
    deletions: DeletionLaw,
    { requests, workers, hopeless, isTimed, loss, removal }: History,
  ) {
    this.simulation = simulation
    this.#outcomes = outcomes
    this.#deletions = deletions
    this.requests = requests
    this.#hopeless = hopeless
    this.#isTimed = isTimed
    this.#repeats = workers.some(({ faults }) => faults.some(({ kind }) => kind === 'twice'))
    const breaks = workers.some(({ faults }) =>
      faults.some(({ kind }) => kind === 'death' || kind === 'error'),
    )
    this.hasCrashed = breaks || loss !== undefined || removal !== undefined
  }

  /** Returns a promise for each lane of the process. It settles unless the process dies. */
  startWorker({ skew, faults, lanes }: WorkerPlan): Promise<unknown>[] {
    const process = this.simulation.startProcess(skew, faults)
    const store = createBatchStore(process.commands, process.runtime)
    const work = lanes.map(async (lane) => {
      for (const delivery of lane) await this.#deliver(process, store, delivery)
    })
    return work.map((lane) => Promise.race([lane, process.death]))
  }

  async #deliver(process: Process, store: BatchStore, { places, after, forgets }: Delivery) {
    if (after > 0) await this.simulation.sleep(process, after)
    const batch = places
      .flatMap((place) => this.requests[place] ?? [])
      .map((request) => this.#delivery(request, forgets))
    const isFailing = forgets && places.every((place) => this.#hopeless.includes(place))
    if (batch.length === 0) return
    try {
      if (isFailing) await store.recountRequests(batch)
      else await this.#store(storeAll, store, process, batch)
    } catch (error) {
      // The outcome of a command is not known, or the process was paused for too long: the queue
      // delivers the requests again.
      if (!(error instanceof CommandFailedError || error instanceof PausedTooLongError)) throw error
      this.hasCrashed = true
    }
  }

  #delivery(request: StoreRequest, forgets: boolean): StoreRequest {
    const before = this.#deliveries.get(request.id) ?? 0
    this.#deliveries.set(request.id, before + 1)
    if (forgets && before > 0) this.#forgotten.add(request.id)
    return { ...request, redelivered: !forgets && before > 0 }
  }

  async #store(
    storeRequests: typeof storeAll,
    store: BatchStore,
    { runtime }: Process,
    batch: readonly StoreRequest[],
  ): Promise<void> {
    const began = this.simulation.now
    const deletions = this.#deletions.answered()
    const answered = new Set(this.answered)
    const answers = await storeRequests(store, runtime, batch)
    const waited = this.simulation.now - began
    if (this.#isTimed)
      assert(waited <= LONGEST_WAIT_MS, `${batch.map(({ id }) => id)} waited for ${waited} ms`)
    for (const request of batch) {
      const answer = answers.get(request.id)
      if (answer === undefined) throw new Error(`${request.id} was not answered`)
      this.answered.add(request.id)
      if ('deletes' in request) {
        assert('outcome' in answer)
        if (request.deletes.redacts) this.#deletions.noteRedacted(request, answered)
        else this.#deletions.noteDeleted(request, answer)
        continue
      }
      assert('source' in answer)
      assertAnswerIsStored(this.simulation, request, answer)
      this.#deletions.noteStored(request, answer, deletions)
      const isOnly = this.#deliveries.get(request.id) === 1
      const knows = (isOnly || request.redelivered) && !this.#forgotten.has(request.id)
      this.#outcomes.assertAnswer(request, answer, knows)
    }
  }

  async repairLater({ skew, after, faults }: RepairPlan): Promise<void> {
    const process = this.simulation.startProcess(skew, faults)
    await this.simulation.sleep(process, after)
    await repair(process).catch((error) => {
      if (!(error instanceof MongoNetworkError)) throw error
    })
  }

  /** Each job ends: its request is delivered until a delivery survives, or it fails for good. */
  async endJobs(): Promise<void> {
    const left = this.requests.filter(({ id }) => !this.answered.has(id))
    const failed = left.filter((request) => this.#hopeless.includes(this.requests.indexOf(request)))
    const process = this.simulation.startProcess(0)
    const store = createBatchStore(process.commands, process.runtime)
    const rest = left
      .filter((request) => !failed.includes(request))
      .map((request) => ({ ...request, redelivered: true }))
    if (rest.length > 0)
      await this.simulation.runUntil(this.#store(storeForSure, store, process, rest))
    if (failed.length > 0) await this.simulation.runUntil(store.recountRequests(failed))
  }

  /**
   * Law 2: the last post of each thread that is not deleted changes nothing when it is posted
   * again. Law 3: it leaves exact totals, even if a dead writer's token was in the source. Returns
   * the reposts.
   */
  async repostLast(failed: readonly StoreRequest[]): Promise<PostRequest[]> {
    if (this.hasCrashed) {
      await this.simulation.pass(STALE_MS)
      // By then, a majority has what late commands wrote. A repost that met such a write only after
      // its read would be merged again, and not know what it changed before.
      this.simulation.database.confirm()
    }
    const last = new Map<string, PostRequest>()
    for (const request of this.requests)
      if ('thread' in request) last.set(sourceIdOfRequest(request), request)
      else if (request.tenant === 'acme') last.delete(request.deletes.sourceId)
    const reposts = [...last.values()].map((request) => {
      return {
        ...request,
        id: `${request.id}-again`,
        stamp: request.stamp + 100_000_000,
        redelivered: false,
      }
    })
    const before = visibleThreads(this.simulation.database)
    const { commands, runtime } = this.simulation.startProcess(0)
    let wasPaused = false
    const answers = await this.simulation.runUntil(
      storeForSure(createBatchStore(commands, runtime), runtime, reposts, () => {
        wasPaused = true
      }),
    )
    assertAgreement(this.simulation, (source) => last.has(source._id))
    if (failed.length > 0) return reposts
    assert.deepEqual(withoutTotals(visibleThreads(this.simulation.database)), withoutTotals(before))
    // A process that was paused during its commands delivers the request again, and does not know
    // what it changed before.
    if (wasPaused) return reposts
    for (const [id, answer] of answers) {
      assert('source' in answer)
      const outcomes = [answer.source, ...answer.quotes].map(({ outcome }) => outcome)
      assert(
        outcomes.every((outcome) => outcome === 'unchanged'),
        `the repost ${id} was answered ${outcomes}`,
      )
    }
    return reposts
  }

  /** Law 3: a repair leaves no open token and exact totals. Without a crash they need none. */
  async assertRepaired(): Promise<void> {
    await this.simulation.runOut()
    await this.simulation.pass(LONG_MS)
    this.simulation.database.confirm()
    const process = this.simulation.startProcess(0)
    const deletes = this.requests.some((request) => 'deletes' in request)
    if (!this.hasCrashed) {
      assert.deepEqual(openTokens(this.simulation), [])
      if (!this.#repeats) assertRemoved(this.simulation, 'all')
    }
    if (this.hasCrashed || deletes) await this.simulation.runUntil(repair(process))
    assert.deepEqual(openTokens(this.simulation), [])
    assertAgreement(this.simulation)
    assertRemoved(this.simulation)
  }
}

async function repair({ commands, runtime }: Process): Promise<void> {
  await repairSources(commands, { repair: true }, runtime)
}

/**
 * Stores requests as a worker does: a request whose thread another process is summing is submitted
 * again.
 */
async function storeAll(
  store: BatchStore,
  runtime: Runtime,
  requests: readonly StoreRequest[],
): Promise<Map<string, StoreAnswer>> {
  const answers = new Map<string, StoreAnswer>()
  for (let left = requests; left.length > 0; ) {
    for (const [id, answer] of await store.store(left)) answers.set(id, answer)
    left = left.filter(({ id }) => !answers.has(id))
    if (left.length > 0) await runtime.delay(50)
  }
  return answers
}

/** Delivers requests again if the process was paused for too long. */
async function storeForSure(
  store: BatchStore,
  runtime: Runtime,
  requests: readonly StoreRequest[],
  onPause = () => {},
): ReturnType<typeof storeAll> {
  try {
    return await storeAll(store, runtime, requests)
  } catch (error) {
    if (!(error instanceof PausedTooLongError)) throw error
    onPause()
    return storeForSure(
      store,
      runtime,
      requests.map((request) => ({ ...request, redelivered: true })),
    )
  }
}
