// Shows other processes which batches of this one have written all of their quotes.
import type { ObjectId } from 'mongodb'
import type { SourceDocument, WriterBatch, WriterDocument } from '../documents.ts'
import { type OpenedSource, type RecountDeps, recountMissed, type WriterBatches } from './recount.ts'
import { withoutSettledTokens } from './tokens.ts'

/** What batches need to know of other processes, and other processes of these batches. */
export type Writer = ReturnType<typeof createWriter>

interface WriterState extends WriterBatches {
  /** Resolves when the writer's document is stored: from then on other processes can ask the writer to check epochs. */
  registered: Promise<void>
  /** As `WriterDocument.asked` was last read. */
  asked: ObjectId
  /** Batches up to this one had begun when it was read. */
  askedUpTo: number
  begun: number
  /** The batches that have ended beyond `contiguous`. */
  ended: Set<number>
  /** All batches up to this one have ended. */
  contiguous: number
  watermark: number
  settling?: Promise<void> | undefined
  scheduled: boolean
}

/** Batches that end within so many ms share one raise of the watermark. After a crash, their sources are summed once more. */
const SETTLE_AFTER_MS = 20
/** A failed raise is tried again after so many ms. */
const SETTLE_AGAIN_MS = 1_000

/** Creates the writer of one process. */
export function createWriter(deps: RecountDeps) {
  const { commands, runtime, watermarks } = deps
  const states = new Map<string, WriterState>()
  let current: WriterState | undefined

  function openState(): WriterState {
    const name = runtime.newId().toHexString()
    const asked = runtime.newId()
    const numbers = { askedUpTo: 0, begun: 0, contiguous: 0, watermark: 0 }
    const batches = { ended: new Set<number>(), opened: new Map<number, readonly OpenedSource[]>() }
    const state = { name, asked, ...numbers, ...batches, registered: register(name, asked), scheduled: false }
    states.set(name, state)
    return state
  }

  async function register(name: string, asked: ObjectId): Promise<void> {
    const document: WriterDocument = { _id: name, since: new Date(runtime.now()), watermark: 0, asked }
    await commands.insert('writers', [document])
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

  /** Raises the watermark. If another process asked, first recounts sources whose sum may have missed quotes of these batches. */
  async function advance(state: WriterState): Promise<void> {
    while (state.watermark < state.contiguous) {
      const upTo = state.contiguous
      if (state.watermark < state.askedUpTo) await recountMissed(deps, state, Math.min(upTo, state.askedUpTo))
      if (!(await raise(state, upTo))) continue
      for (const batch of state.opened.keys()) if (batch <= upTo) state.opened.delete(batch)
    }
  }

  /** Returns false if another process asked in the meantime. */
  async function raise(state: WriterState, upTo: number): Promise<boolean> {
    const { name, asked } = state
    const { n } = await commands.update('writers', [{ q: { _id: name, asked }, u: { $max: { watermark: upTo } } }])
    if (n === 1) state.watermark = upTo
    else await readAsked(state)
    return n === 1
  }

  async function readAsked(state: WriterState): Promise<void> {
    const [document] = await commands.find('writers', [state.name])
    // The document was removed: all tokens count as open until it is stored again.
    if (document === undefined) await register(state.name, state.asked)
    else state.asked = document.asked
    state.askedUpTo = state.begun
  }

  /** Resolves when the watermark covers every batch before the first that has not ended. Throws if MongoDB fails. */
  async function settle(): Promise<void> {
    for (const state of states.values()) await settleState(state)
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
      state.opened.set(batch, opened)
      state.ended.add(batch)
      while (state.ended.delete(state.contiguous + 1)) state.contiguous += 1
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
    settle,
    /** Returns these sources without the tokens of settled batches. Settles ended batches of this process and reads the watermarks of others, if their tokens need it. */
    withoutSettledTokens: (sources: readonly SourceDocument[]) =>
      withoutSettledTokens(sources, { own: states, settle, watermarks }),
  }
}
