// The state of a writer under one name: what of its batches is known, its document in `writers`, and recounts.
import type { SourceDocument, WriterDocument } from '../documents.ts'
import { recount, type SumDeps } from './sum-sources.ts'

/** A source to whose totals a batch added its quotes before it wrote them, with its epoch at that time. */
export type OpenedSource = { id: string; epoch: SourceDocument['meta']['epoch'] }
export type UncheckedSource = OpenedSource & { batch: number }

export interface WriterState {
  name: string
  registered: Promise<void>
  begun: number
  /** The batches that have ended beyond `contiguous`. */
  ended: Set<number>
  /** All batches up to this one have ended. */
  contiguous: number
  /** The sources of ended batches whose epochs are still to be checked. */
  unchecked: UncheckedSource[]
  watermark: number
  /** The last check and raise, after which the next one begins. */
  advancing: Promise<void>
  recounting?: Promise<void> | undefined
  isScheduled: boolean
}

/** Opens and registers a writer under a new name. */
export function openState(deps: SumDeps): WriterState {
  const name = deps.runtime.newId().toHexString()
  return {
    name,
    registered: register(deps, name),
    begun: 0,
    ended: new Set(),
    contiguous: 0,
    unchecked: [],
    watermark: 0,
    advancing: Promise.resolve(),
    isScheduled: false,
  }
}

/** Stores the document of a writer. Without the document, the tokens of all batches count as open. */
export async function register({ commands, runtime }: SumDeps, name: string): Promise<void> {
  const document: WriterDocument = { _id: name, since: new Date(runtime.now()), watermark: 0 }
  await commands.insert('writers', [document])
}

/** Recounts these sources in the background, and removes the tokens of the writer's ended batches from them. */
export function recountMissed(deps: SumDeps, state: WriterState, upTo: number, ids: ReadonlySet<string>): void {
  async function recountAll(): Promise<void> {
    await recount(deps, [...ids], ({ writer, batch }) => writer === state.name && batch <= upTo)
    state.unchecked = state.unchecked.filter(({ id, batch }) => batch > upTo || !ids.has(id))
  }
  state.recounting ??= recountAll().finally(() => {
    state.recounting = undefined
  })
  // The next one that settles the writer notices a failure.
  state.recounting.catch(() => {})
}
