// The commit log of this process. It has a document in `writers` for each name of the writer, whose
// watermark shows which batches are committed. Three functions move a watermark:
// - `settleState` calls `advance` until the watermark covers all batches that have ended
// - `advance` checks the sources of these batches, and raises the watermark up to the first source
// that was summed too early
// - `recountMissed` recounts such sources in the background. `settleState` waits for it before it
// calls `advance` again
import type { SourceOrTombstone, ThreadWork, WriterBatch } from '../documents.ts'
import { recount, type SumDeps } from './sum-sources.ts'

export type Writer = ReturnType<typeof createWriter>

/**
 * A source that a batch has opened. Its totals include the batch's quotes, which are written after
 * it.
 */
type OpenedSource = { id: string; epoch: SourceOrTombstone['meta']['epoch'] }
type UncheckedSource = OpenedSource & { batch: number }

/** A writer under one name. Its document in `writers` is created with the first watermark. */
class WriterState {
  readonly name: string
  begun = 0
  /** The batches above `contiguous` that have ended. */
  readonly ended = new Set<number>()
  /** All batches up to this one have ended. */
  contiguous = 0
  /** The sources of ended batches whose epochs are still to be checked. */
  unchecked: UncheckedSource[] = []
  watermark = 0
  /** The last `advance`. The next one begins when it has ended. */
  advancing = Promise.resolve()
  recounting: Promise<void> | undefined
  isScheduled = false

  constructor(name: string) {
    this.name = name
  }
}

/**
 * A batch that has not ended. It ends when each of its threads is stored, or does not have the
 * batch's token.
 */
export interface UnendedBatch {
  state: WriterState
  batch: WriterBatch
  /** The sources whose epochs must be checked. */
  opened: readonly OpenedSource[]
  /** Threads of the batch that are not stored, and may have its token. */
  left: readonly ThreadWork[]
}

/**
 * Batches that end within SETTLE_AFTER_MS share one check of epochs. If the check fails, the next
 * one follows SETTLE_AGAIN_MS later.
 */
const SETTLE_AFTER_MS = 20
const SETTLE_AGAIN_MS = 1_000

/** Creates the commit log of this process. */
export function createWriter(deps: SumDeps) {
  const { commands, runtime } = deps
  /** The current state, and abandoned states that have batches to settle. */
  const states = new Set<WriterState>()
  let current: WriterState | undefined

  async function settleLater(state: WriterState, ms: number): Promise<void> {
    if (state.isScheduled) return
    state.isScheduled = true
    await runtime.delay(ms)
    state.isScheduled = false
    await settleState(state).catch(() => settleLater(state, SETTLE_AGAIN_MS))
  }

  async function settleState(state: WriterState): Promise<void> {
    while (state.watermark < state.contiguous) {
      await advanceOnce(state)
      await state.recounting
    }
  }

  /**
   * Calls `advance` after the running `advance`, which may have begun before the last batch ended.
   */
  function advanceOnce(state: WriterState): Promise<void> {
    state.advancing = state.advancing.catch(() => {}).then(() => advance(state))
    return state.advancing
  }

  /**
   * Raises the watermark over the batches that have ended. Stops before the first batch with a
   * source that was summed since the batch opened it, because that sum may have missed quotes. A
   * sum that begins after this check misses none.
   */
  async function advance(state: WriterState): Promise<void> {
    const upTo = state.contiguous
    if (state.watermark === upTo) return
    const missed = await findMissed(state.unchecked.filter(({ batch }) => batch <= upTo))
    state.unchecked = state.unchecked.filter((source) => source.batch > upTo || missed.has(source))
    const left = state.unchecked.filter(({ batch }) => batch <= upTo)
    await raise(state, Math.min(upTo, ...left.map(({ batch }) => batch - 1)))
    if (left.length > 0) recountMissed(state, upTo, new Set(left.map(({ id }) => id)))
  }

  /** Returns the sources that were summed since they were opened. */
  async function findMissed(opened: readonly UncheckedSource[]): Promise<Set<UncheckedSource>> {
    const ids = [...new Set(opened.map(({ id }) => id))]
    const found = await commands.findVersions('sources', ids, 'withEpoch')
    const epochs = new Map(found.map(({ _id, meta }) => [_id, meta.epoch]))
    return new Set(
      opened.filter(({ id, epoch }) => epochs.has(id) && String(epochs.get(id)) !== String(epoch)),
    )
  }

  /**
   * Raises the watermark in the writer's document, which does not exist at first or after it was
   * removed.
   */
  async function raise(state: WriterState, watermark: number): Promise<void> {
    if (state.watermark >= watermark) return
    const raised = { q: { _id: state.name }, u: { $max: { watermark } }, upsert: true } as const
    const { n } = await commands.update('writers', [raised])
    // `n` is zero if a late `raise` created the document at the same moment.
    if (n === 1) state.watermark = watermark
  }

  /**
   * Recounts these sources in the background, and removes from them the tokens of the writer's
   * batches that have ended. Does nothing while an earlier recount runs: `settleState` waits for
   * that recount, then calls `advance` again. `settleState` also receives a recount's failure.
   */
  function recountMissed(state: WriterState, upTo: number, ids: ReadonlySet<string>): void {
    async function recountAll(): Promise<void> {
      await recount(deps, [...ids], ({ writer, batch }) => writer === state.name && batch <= upTo)
      state.unchecked = state.unchecked.filter(({ id, batch }) => batch > upTo || !ids.has(id))
    }
    state.recounting ??= recountAll().finally(() => {
      state.recounting = undefined
    })
    state.recounting.catch(() => {})
  }

  return {
    states: states as ReadonlySet<WriterState>,
    advanceOnce,
    /** Begins a batch of these threads. After this, their tokens may be written. */
    begin(left: readonly ThreadWork[]): UnendedBatch {
      current ??= new WriterState(runtime.newId().toHexString())
      states.add(current)
      current.begun += 1
      return {
        state: current,
        batch: { writer: current.name, batch: current.begun },
        opened: [],
        left,
      }
    },
    /**
     * Call when each thread of the batch is stored, or does not have the batch's token. The
     * watermark covers the batch soon after.
     */
    end({ state, batch: { batch }, opened }: UnendedBatch): void {
      for (const source of opened) state.unchecked.push({ ...source, batch })
      state.ended.add(batch)
      while (state.ended.delete(state.contiguous + 1)) state.contiguous += 1
      void settleLater(state, SETTLE_AFTER_MS)
    },
    /**
     * Call if some quotes of the batch may not be written. The watermark then never covers the
     * batch, and the next batch begins under a new name.
     */
    abandon({ state }: UnendedBatch): void {
      if (current === state) current = undefined
      // The watermark still rises over the batches before this one. If it fails to, other processes
      // sum their sources.
      void settleState(state)
        .catch(() => {})
        .finally(() => states.delete(state))
    },
    /**
     * Resolves when the watermark covers all batches before the first one that has not ended.
     * Throws if MongoDB fails.
     */
    async settle(): Promise<void> {
      for (const state of states) await settleState(state)
    },
  }
}
