// The commit log of this process: its document in `writers` shows which of its batches have written all of their quotes.
import type { SourceDocument, WriterBatch, WriterDocument } from '../documents.ts'
import { findByIds } from '../mongodb/mongo-reads.ts'
import { type RecountDeps, recount } from './recount.ts'

/** The commit log of one process. */
export type Writer = ReturnType<typeof createWriter>

/** A source to whose totals a batch added its quotes before it wrote them. */
export interface OpenedSource extends WriterBatch {
  id: string
  /** The source's epoch when the batch opened it. */
  epoch: SourceDocument['meta']['epoch']
}

interface WriterState {
  name: string
  /** Resolves when the writer's document is stored. */
  registered: Promise<void>
  begun: number
  /** The ended batches above the watermark, each with the sources whose epochs are still to be checked. */
  ended: Map<number, readonly OpenedSource[]>
  /** All batches up to this one have ended. */
  contiguous: number
  watermark: number
  advancing?: Promise<void> | undefined
  recounting?: Promise<void> | undefined
  isScheduled: boolean
}

/** Batches that end within this time share one check of epochs and one raise of the watermark. After a crash, their sources are summed once more. */
const SETTLE_AFTER_MS = 20
/** The pause after a failure to settle. */
const SETTLE_AGAIN_MS = 1_000

/** Creates the commit log of one process. */
export function createWriter(deps: RecountDeps) {
  const { commands, runtime, watermarks } = deps
  const states = new Map<string, WriterState>()
  let current: WriterState | undefined

  function openState(): WriterState {
    const name = runtime.newId().toHexString()
    const numbers = { begun: 0, contiguous: 0, watermark: 0 }
    const state: WriterState = { name, ...numbers, ended: new Map(), registered: register(name), isScheduled: false }
    states.set(name, state)
    return state
  }

  async function register(name: string): Promise<void> {
    const document: WriterDocument = { _id: name, since: new Date(runtime.now()), watermark: 0 }
    await commands.insert('writers', [document])
  }

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

  /** Checks and raises for all batches that have ended by now. */
  async function advanceOnce(state: WriterState): Promise<void> {
    // One that is under way may have begun before the last batch ended.
    await state.advancing?.catch(() => {})
    state.advancing ??= advance(state).finally(() => {
      state.advancing = undefined
    })
    await state.advancing
  }

  /**
   * Raises the watermark over the ended batches up to the first with a source that was summed since the batch opened it. The sum may have missed quotes of the batch, so the
   * source is recounted in the background. A sum that begins after this check misses none: the quotes of an ended batch are written.
   */
  async function advance(state: WriterState): Promise<void> {
    const upTo = state.contiguous
    if (state.watermark === upTo) return
    const missed = await findMissed([...state.ended.values()].flat().filter(({ batch }) => batch <= upTo))
    for (const batch of state.ended.keys())
      if (batch <= upTo)
        state.ended.set(
          batch,
          missed.filter((source) => source.batch === batch),
        )
    await raise(state, Math.min(upTo, ...missed.map(({ batch }) => batch - 1)))
    if (missed.length === 0) return
    state.recounting ??= recountMissed(state, upTo, missed).finally(() => {
      state.recounting = undefined
    })
    // `settleState` awaits the recount, or the next settling finds that it failed.
    state.recounting.catch(() => {})
  }

  /** Returns the sources that were summed since they were opened. */
  async function findMissed(opened: readonly OpenedSource[]): Promise<OpenedSource[]> {
    const ids = [...new Set(opened.map(({ id }) => id))]
    const found = await findByIds(ids, (some) => commands.findVersions('sources', some))
    const epochs = new Map(found.map(({ _id, meta }) => [_id, meta.epoch]))
    return opened.filter(({ id, epoch }) => epochs.has(id) && String(epochs.get(id)) !== String(epoch))
  }

  /** Recounts these sources, which removes the tokens of this writer's ended batches from them. */
  async function recountMissed(state: WriterState, upTo: number, missed: readonly OpenedSource[]): Promise<void> {
    const ids = new Set(missed.map(({ id }) => id))
    await recount(deps, [...ids], ({ writer, batch }) => writer === state.name && batch <= upTo)
    for (const [batch, sources] of state.ended)
      if (batch <= upTo)
        state.ended.set(
          batch,
          sources.filter(({ id }) => !ids.has(id)),
        )
  }

  async function raise(state: WriterState, upTo: number): Promise<void> {
    while (state.watermark < upTo) {
      const { n } = await commands.update('writers', [{ q: { _id: state.name }, u: { $max: { watermark: upTo } } }])
      if (n === 1) state.watermark = upTo
      // The document was removed: the tokens of all batches count as open until it is stored again.
      else await register(state.name)
    }
    for (const batch of state.ended.keys()) if (batch <= state.watermark) state.ended.delete(batch)
  }

  return {
    /** Begins a batch, whose tokens may then be written. Throws if MongoDB fails. */
    async begin(): Promise<WriterBatch> {
      current ??= openState()
      const state = current
      await state.registered.catch((error) => {
        if (current === state) current = undefined
        throw error
      })
      state.begun += 1
      return { writer: state.name, batch: state.begun }
    },
    /** Call when all quotes of the batch are written. The watermark covers the batch soon after. */
    end({ writer, batch }: WriterBatch, opened: readonly OpenedSource[]): void {
      const state = states.get(writer)
      if (state === undefined) return
      state.ended.set(batch, opened)
      while (state.ended.has(state.contiguous + 1)) state.contiguous += 1
      void settleLater(state, SETTLE_AFTER_MS)
    },
    /** Call if some quotes of the batch may not be written. Its tokens, and those of all batches of this name that have not ended, stay open until they are stale. Later batches get another name. */
    abandon({ writer }: WriterBatch): void {
      if (current?.name === writer) current = undefined
      const state = states.get(writer)
      if (state === undefined) return
      // Earlier batches are still settled. If that fails, other processes sum their sources.
      void settleState(state)
        .catch(() => {})
        .finally(() => states.delete(writer))
    },
    /** Resolves when the watermark covers every batch before the first that has not ended. Throws if MongoDB fails. */
    async settle(): Promise<void> {
      for (const state of states.values()) await settleState(state)
    },
    /**
     * Returns these sources without the tokens of settled batches. Raises this process's watermark if they have a token of one of its ended batches, and reads the watermarks of other writers.
     * Waits for no recount: tokens that need one stay open.
     */
    async withoutSettledTokens(sources: readonly SourceDocument[]): Promise<SourceDocument[]> {
      const tokens = sources.flatMap(({ meta }) => meta.tokens ?? [])
      for (const state of states.values()) {
        const isOwn = ({ writer, batch }: WriterBatch) =>
          writer === state.name && batch > state.watermark && batch <= state.contiguous
        // If the watermark can't be raised now, the tokens stay open.
        if (tokens.some(isOwn)) await advanceOnce(state).catch(() => {})
        watermarks.remember(state.name, state.watermark)
      }
      await watermarks.read(tokens.filter(({ writer }) => !states.has(writer)))
      return sources.map(watermarks.withoutSettledTokens)
    },
  }
}
