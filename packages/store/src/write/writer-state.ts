// The state of a writer under one name: its batches, its watermark, and its recounts.
import type { SourceDocument, ThreadWork, WriterBatch } from '../documents.ts'
import { recount, type SumDeps } from './sum-sources.ts'

/**
 * A source that a batch opened. Its totals included the batch's quotes before these were written. `epoch`: the epoch of
 * the source when it was opened.
 */
type OpenedSource = { id: string; epoch: SourceDocument['meta']['epoch'] }
export type UncheckedSource = OpenedSource & { batch: number }

/** A writer under one name. Its document in `writers` is stored with its first watermark. */
export class WriterState {
  readonly name: string
  begun = 0
  /** The batches that have ended beyond `contiguous`. */
  readonly ended = new Set<number>()
  /** All batches up to this one have ended. */
  contiguous = 0
  /** The sources of ended batches whose epochs are still to be checked. */
  unchecked: UncheckedSource[] = []
  watermark = 0
  /** The last `advance`, after which the next one begins. */
  advancing = Promise.resolve()
  recounting: Promise<void> | undefined
  isScheduled = false

  constructor(name: string) {
    this.name = name
  }
}

/** A numbered batch that has not ended. It ends when its threads are stored, or have no token of it. */
export interface UnendedBatch {
  state: WriterState
  batch: WriterBatch
  /** The sources whose epochs are to be checked when the batch has ended. */
  opened: readonly OpenedSource[]
  /** Its threads that are not stored, and that may have a token of it. */
  left: readonly ThreadWork[]
}

/**
 * Recounts these sources in the background, and removes the tokens of the writer's ended batches from them. Does
 * nothing while an earlier recount runs: `settleState` then advances again.
 */
export function recountMissed(deps: SumDeps, state: WriterState, upTo: number, ids: ReadonlySet<string>): void {
  async function recountAll(): Promise<void> {
    await recount(deps, [...ids], ({ writer, batch }) => writer === state.name && batch <= upTo)
    state.unchecked = state.unchecked.filter(({ id, batch }) => batch > upTo || !ids.has(id))
  }
  state.recounting ??= recountAll().finally(() => {
    state.recounting = undefined
  })
  // `settleState`, which waits for the recount, notices a failure.
  state.recounting.catch(() => {})
}
