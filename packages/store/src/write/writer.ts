// The commit log of this process: its document in `writers` shows which of its batches are committed.
import type { ThreadWork } from '../documents.ts'
import type { SumDeps } from './sum-sources.ts'
import { recountMissed, type UncheckedSource, type UnendedBatch, WriterState } from './writer-state.ts'

export type Writer = ReturnType<typeof createWriter>

/**
 * Batches that end within this time share one check of epochs and one raise of the watermark. If the process crashes
 * before these, the sources are summed again.
 */
const SETTLE_AFTER_MS = 20
/** The pause after a failure to settle. */
const SETTLE_AGAIN_MS = 1_000

export function createWriter(deps: SumDeps) {
  const { commands, runtime } = deps
  /** The current state, and those that were abandoned and have batches to settle. */
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

  /** Calls `advance` after the `advance` that is under way, which may have begun before the last batch ended. */
  function advanceOnce(state: WriterState): Promise<void> {
    state.advancing = state.advancing.catch(() => {}).then(() => advance(state))
    return state.advancing
  }

  /**
   * Raises the watermark over the ended batches, up to the first with a source that was summed since the batch opened
   * it. That sum may have missed quotes, so the source is recounted in the background. A sum that begins after this
   * check misses none.
   */
  async function advance(state: WriterState): Promise<void> {
    const upTo = state.contiguous
    if (state.watermark === upTo) return
    const missed = await findMissed(state.unchecked.filter(({ batch }) => batch <= upTo))
    state.unchecked = state.unchecked.filter((source) => source.batch > upTo || missed.has(source))
    const left = state.unchecked.filter(({ batch }) => batch <= upTo)
    await raise(state, Math.min(upTo, ...left.map(({ batch }) => batch - 1)))
    if (left.length > 0) recountMissed(deps, state, upTo, new Set(left.map(({ id }) => id)))
  }

  /** Returns the sources that were summed since they were opened. */
  async function findMissed(opened: readonly UncheckedSource[]): Promise<Set<UncheckedSource>> {
    const ids = [...new Set(opened.map(({ id }) => id))]
    const found = await commands.findVersions('sources', ids, 'withEpoch')
    const epochs = new Map(found.map(({ _id, meta }) => [_id, meta.epoch]))
    return new Set(opened.filter(({ id, epoch }) => epochs.has(id) && String(epochs.get(id)) !== String(epoch)))
  }

  /**
   * Raises the watermark in the writer's document. Stores the document if it is absent, as at first or after a removal:
   * without it, the tokens of all batches count as open.
   */
  async function raise(state: WriterState, watermark: number): Promise<void> {
    if (state.watermark >= watermark) return
    const raised = { q: { _id: state.name }, u: { $max: { watermark } }, upsert: true } as const
    const { n } = await commands.update('writers', [raised])
    // Zero if a late raise stored the document at the same moment.
    if (n === 1) state.watermark = watermark
  }

  return {
    states: states as ReadonlySet<WriterState>,
    advanceOnce,
    /** Begins a batch of these threads, whose tokens may then be written. */
    begin(left: readonly ThreadWork[]): UnendedBatch {
      current ??= new WriterState(runtime.newId().toHexString())
      states.add(current)
      current.begun += 1
      return { state: current, batch: { writer: current.name, batch: current.begun }, opened: [], left }
    },
    /** Call when each thread of the batch is stored or has no token of it. The watermark covers the batch soon. */
    end({ state, batch: { batch }, opened }: UnendedBatch): void {
      for (const source of opened) state.unchecked.push({ ...source, batch })
      state.ended.add(batch)
      while (state.ended.delete(state.contiguous + 1)) state.contiguous += 1
      void settleLater(state, SETTLE_AFTER_MS)
    },
    /**
     * Call if some quotes of the batch may not be written. The watermark of the writer's name then stops before this
     * batch, and the next batch begins under another name.
     */
    abandon({ state }: UnendedBatch): void {
      if (current === state) current = undefined
      // Earlier batches are still settled. If that fails, other processes sum their sources.
      void settleState(state)
        .catch(() => {})
        .finally(() => states.delete(state))
    },
    /** Resolves when the watermark covers all batches before the first that has not ended. Throws if MongoDB fails. */
    async settle(): Promise<void> {
      for (const state of states) await settleState(state)
    },
  }
}
