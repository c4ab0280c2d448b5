import type { ObjectId } from 'mongodb'
import type { SourceDocument, WriterBatch, WriterDocument } from './documents.ts'
import { findByIds } from './mongodb.ts'
import { type RecountDeps, recount } from './recount.ts'

// A process that stores requests, as other such processes see it: its tokens stand in sources, and its watermark says which of them are complete.

/** A source to whose totals a batch added its quotes before it wrote them. */
export interface OpenedSource {
  id: string
  /** Its epoch when it was opened. */
  epoch: ObjectId | undefined
}

export interface Writer {
  /** Begins a batch, whose tokens may then be written. */
  begin(): WriterBatch
  /** Call when all quotes of the batch are written. Soon after, other processes can tell. */
  end(batch: WriterBatch, opened: readonly OpenedSource[]): void
  /** Call when the batch may have left something incomplete. Its tokens stay open, and later batches get another name. */
  abandon(batch: WriterBatch): void
  /** Resolves when the watermark covers every batch that has ended. Throws where MongoDB fails. */
  settle(): Promise<void>
  /** Removes the tokens of complete batches from these sources, as they were read. Reads the watermarks that it needs. */
  withOpenTokens(sources: readonly SourceDocument[]): Promise<SourceDocument[]>
}

/** The batches of one name. */
interface WriterState {
  name: string
  since: Date
  begun: number
  /** The batches that have ended beyond `contiguous`, and the sources of all that the watermark does not cover yet. */
  ended: Set<number>
  opened: Map<number, readonly OpenedSource[]>
  /** All batches up to this one have ended. */
  contiguous: number
  watermark: number
  settling?: Promise<void> | undefined
  scheduled: boolean
}

/** Batches that end within so many ms share one look and one write: a crash leaves so much to be summed once more. */
const SETTLE_AFTER_MS = 20
/** Where that failed it is tried again after so many ms. */
const SETTLE_AGAIN_MS = 1_000

/** Creates the writer of one process. */
export function createWriter(deps: RecountDeps): Writer {
  const { commands, runtime, watermarks } = deps
  const states = new Map<string, WriterState>()
  let current: WriterState | undefined

  function open(): WriterState {
    const name = runtime.newId().toHexString()
    const numbers = { begun: 0, contiguous: 0, watermark: 0 }
    const state = {
      name,
      since: new Date(runtime.now()),
      ...numbers,
      ended: new Set<number>(),
      opened: new Map(),
      scheduled: false,
    }
    states.set(name, state)
    return state
  }

  async function settleLater(state: WriterState, ms: number): Promise<void> {
    if (state.scheduled) return
    state.scheduled = true
    await runtime.delay(ms)
    state.scheduled = false
    await settleState(state).catch(() => settleLater(state, SETTLE_AGAIN_MS))
  }

  function settleState(state: WriterState): Promise<void> {
    state.settling ??= advance(state).finally(() => {
      state.settling = undefined
    })
    return state.settling
  }

  /** Moves the watermark, once every source of the batches is known to hold totals that miss no quote of theirs. */
  async function advance(state: WriterState): Promise<void> {
    while (state.watermark < state.contiguous) {
      const upTo = state.contiguous
      const batches = [...state.opened.keys()].filter((batch) => batch <= upTo)
      const missed = await findMissed(batches.flatMap((batch) => state.opened.get(batch) ?? []))
      const isDone = ({ writer, batch }: WriterBatch) => writer === state.name && batch <= upTo
      if (missed.length > 0) await recount(deps, missed, isDone)
      const document: Omit<WriterDocument, '_id'> = { since: state.since, watermark: upTo }
      await commands.update('writers', [{ q: { _id: state.name }, u: { $set: document }, upsert: true }])
      for (const batch of batches) state.opened.delete(batch)
      state.watermark = upTo
    }
  }

  /** The sources that were summed since they were opened: the sum may have missed quotes. */
  async function findMissed(opened: readonly OpenedSource[]): Promise<string[]> {
    const ids = [...new Set(opened.map(({ id }) => id))]
    const found = await findByIds(ids, (some) => commands.findVersions('sources', some))
    const epochs = new Map(found.map(({ _id, meta }) => [_id, meta.epoch]))
    const missed = opened.filter(({ id, epoch }) => epochs.has(id) && String(epochs.get(id)) !== String(epoch))
    return [...new Set(missed.map(({ id }) => id))]
  }

  async function settle(): Promise<void> {
    for (const state of states.values()) await settleState(state)
  }

  return {
    begin() {
      current ??= open()
      current.begun += 1
      return { writer: current.name, batch: current.begun }
    },
    end({ writer, batch }, opened) {
      const state = states.get(writer)
      if (state === undefined) return
      state.opened.set(batch, opened)
      state.ended.add(batch)
      while (state.ended.delete(state.contiguous + 1)) state.contiguous += 1
      void settleLater(state, SETTLE_AFTER_MS)
    },
    abandon({ writer }) {
      if (current?.name === writer) current = undefined
      const state = states.get(writer)
      if (state === undefined) return
      // What ended before it is still settled. Where that fails, other processes sum those sources.
      void settleState(state)
        .catch(() => {})
        .finally(() => states.delete(writer))
    },
    settle,
    async withOpenTokens(sources) {
      const tokens = sources.flatMap(({ meta }) => meta.writers ?? [])
      const hasEnded = ({ writer, batch }: WriterBatch) => batch <= (states.get(writer)?.contiguous ?? 0)
      const isSettled = ({ writer, batch }: WriterBatch) => batch <= (states.get(writer)?.watermark ?? 0)
      // Where the watermark can't move now, the tokens stay open.
      if (tokens.some((token) => hasEnded(token) && !isSettled(token))) await settle().catch(() => {})
      for (const { name, watermark } of states.values()) watermarks.raise(name, watermark)
      await watermarks.learn(tokens.filter(({ writer }) => !states.has(writer)))
      return sources.map(watermarks.withOpenTokens)
    },
  }
}
