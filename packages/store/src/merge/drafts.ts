// Makes the drafts of new documents from requests, and the digests of their texts. Sends no
// command.
import { hash } from 'node:crypto'
import {
  createRedactsOf,
  ERASED,
  erasedWith,
  moreOf,
  REDACTED,
  type Redacts,
  STORED_STATUS,
} from '@sluice/contract'
import { ObjectId } from 'mongodb'
import type {
  DeleteRequest,
  InputQuote,
  InputThread,
  PostRequest,
  QuoteDraft,
  SourceDocument,
  SourceDraft,
  SourceOrTombstone,
  ThreadPlan,
} from '../documents.ts'
import { listKeyOf, quoteIdsOf, sourceIdOf } from '../ids.ts'
import { acceptedAtOf, positionAt, withDerived, withDerivedScore } from '../stored-fields.ts'

/** Converts an accepted request to the form that the store uses. */
export function inputThread({ tenant, thread, suppressed, ...request }: PostRequest): InputThread {
  const { service, externalId, ...source } = thread.source
  const sourceId = sourceIdOf(tenant, thread.source)
  const ids = quoteIdsOf(sourceId, thread.quotes)
  const input = {
    ...request,
    names: { _id: sourceId, tenant, service, externalId },
    source: withDate(source),
    quotes: thread.quotes.map((quote, index) => ({
      names: { _id: ids[index] ?? '', sourceId, position: positionAt(request.stamp, index) },
      values: withDate(quote),
    })),
  }
  return suppressed === undefined ? input : suppress(input, suppressed)
}

/**
 * Redacts the quotes of these speakers. They keep the ids of what was posted, so that different
 * quotes stay different, and a repeat finds them. The digest goes: it would recognise a thread with
 * the words.
 */
function suppress(
  { digest: _, ...input }: InputThread,
  suppressed: ReadonlySet<string>,
): InputThread {
  let redacts: Redacts = 'quotes'
  const redactsOf = createRedactsOf({ ...input.names, ...input.source })
  const quotes = input.quotes.map(({ names, values }): InputQuote => {
    if (values.speaker === undefined || !suppressed.has(values.speaker)) return { names, values }
    redacts = moreOf(redacts, redactsOf(values))
    return { names, values: { ...values, ...REDACTED }, isSuppressed: true }
  })
  const source = { ...input.source, ...erasedWith(redacts, input.source) }
  return { ...input, source, quotes }
}

/** Sorts after all positions, so that a redaction moves no quote. */
const NO_POSITION = '~'

/**
 * Converts a redaction to the form of a post that changes the texts and speakers of stored quotes.
 */
export function inputRedaction(
  { id, stamp, redelivered, deletes }: DeleteRequest,
  { _id: sourceId, tenant, service, externalId, ...stored }: SourceDocument,
): InputThread {
  const { quoteIds = [], redacts = 'quotes' } = deletes
  return {
    ...{ id, stamp, redelivered },
    names: { _id: sourceId, tenant, service, externalId },
    source: { title: ERASED, ...erasedWith(redacts, stored) },
    quotes: quoteIds.map((_id) => ({
      names: { _id, sourceId, position: NO_POSITION },
      values: REDACTED,
    })),
    redacts,
  }
}

/** Returns the fields to store. */
function withDate<Fields extends { createdAt?: string; exportedId?: string }>({
  createdAt,
  exportedId: _,
  ...values
}: Fields) {
  return createdAt === undefined ? values : { ...values, createdAt: new Date(createdAt) }
}

/** The version of a document that has not been written. */
const UNWRITTEN = new ObjectId('000000000000000000000000')
/** The word count of a text that has not been counted. */
export const UNCOUNTED = -1

/**
 * Makes the draft of a source that is not stored. The request is the whole thread, so its digest is
 * kept.
 */
export function newSource(
  { id: insertedBy, names, source, stamp, digest }: InputThread,
  tombstone?: SourceOrTombstone,
): SourceDraft {
  const { epoch, deletion } = tombstone?.meta ?? {}
  const acceptedAt = acceptedAtOf(stamp)
  const { values, derived } = withDerived(source, acceptedAt)
  const listKey = listKeyOf(names.tenant, acceptedAt, names._id)
  const document = {
    ...names,
    ...values,
    acceptedAt,
    status: STORED_STATUS,
    wordCount: 0,
    quoteCount: 0,
    meta: {
      version: UNWRITTEN,
      listKey,
      stamp,
      ...derived,
      insertedBy,
      ...(digest !== undefined && { digest }),
      ...(epoch && { epoch }),
      ...(deletion && { deletion }),
    },
  }
  return { document, changed: true, advanced: true, outcome: 'created' }
}

/** Makes the draft of a quote that is not stored. `cover`: the source's `meta.cover`, or 0. */
export function newQuote(
  quote: InputQuote,
  { id: insertedBy, stamp }: InputThread,
  cover: number,
): QuoteDraft {
  const { values, derived } = withDerivedScore(quote.values)
  const meta = { version: UNWRITTEN, stamp, ...derived, insertedBy, ...(cover > 0 && { cover }) }
  const document = { ...quote.names, ...values, wordCount: UNCOUNTED, meta }
  return { document, changed: true, advanced: true, outcome: 'created' }
}

/**
 * Plans a thread that is not stored, from its only request. The quotes of one request have
 * different ids, so they need no merge.
 */
export function planNew(request: InputThread): ThreadPlan {
  const source = newSource(request)
  const quoteWrites = request.quotes.map((quote) => newQuote(quote, request, 0))
  const quotes = new Map(quoteWrites.map((draft) => [draft.document._id, draft]))
  const outcomes = [{ source: source.outcome, quotes: quoteWrites.map(({ outcome }) => outcome) }]
  return { source, quotes, quoteWrites, outcomes }
}

/**
 * A hash has 96 bits, so texts do not collide by chance. A tenant that makes texts collide on
 * purpose harms only its own quotes.
 */
const TEXT_HASH_LENGTH = 16

/** Returns the digest of a text: its length in UTF-16 units, and a hash. */
export function textDigestOf(text: string): string {
  return `${text.length}.${hash('sha256', text, 'base64url').slice(0, TEXT_HASH_LENGTH)}`
}
