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
  withErased,
} from '@sluice/contract'
import { ObjectId } from 'mongodb'
import {
  acceptedAtOf,
  type DeleteRequest,
  type InputQuote,
  type InputThread,
  type PostRequest,
  positionAt,
  type QuoteDraft,
  type SourceDocument,
  type SourceDraft,
  type SourceOrTombstone,
  type SuppressedSpeakers,
  type ThreadPlan,
  withDerived,
  withDerivedScore,
} from '../documents.ts'
import { listKeyOf, quoteIdsOf, sourceIdOf } from '../ids.ts'

/** Converts an accepted request to the form that the store uses. */
export function inputThread({
  tenant,
  thread,
  suppressions,
  ...request
}: PostRequest): InputThread {
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
  return suppressions === undefined ? input : suppress(input, suppressions)
}

/**
 * Redacts the quotes of suppressed speakers. They keep the ids of what was posted, so that
 * different quotes stay different, and a repeat finds them. The digest is left out, because it is
 * of a thread with the words.
 */
function suppress(
  { digest, ...input }: InputThread,
  { hashOf, has }: SuppressedSpeakers,
): InputThread {
  const isSuppressed = (hash: string) => has(hash, input.names.service)
  const erased: Record<string, Redacts> = {}
  const channel = input.source.channelName && hashOf(input.source.channelName)
  let isChanged = channel !== undefined && isSuppressed(channel)
  if (channel !== undefined && isChanged) erased[channel] = 'channel'
  const redactsOf = createRedactsOf({ ...input.names, ...input.source })
  const quotes = input.quotes.map((quote): InputQuote => {
    const { names, values } = quote
    const hash = values.speaker === undefined ? undefined : hashOf(values.speaker)
    if (hash === undefined || !isSuppressed(hash)) return quote
    isChanged = true
    const redacts = moreOf(erased[hash] ?? 'quotes', redactsOf(values))
    if (redacts !== 'quotes') erased[hash] = redacts
    return { names, values: { ...values, ...REDACTED }, isSuppressed: true }
  })
  if (!isChanged) return { ...input, ...(digest !== undefined && { digest }), isSuppressed }
  const source = withErased(mostOf(Object.values(erased)), input.source)
  return { ...input, source, quotes, erased, isSuppressed }
}

/** Joins what two requests have erased. */
export function joinErased(
  one: Record<string, Redacts> = {},
  other: Record<string, Redacts> = {},
): Record<string, Redacts> {
  const joined = { ...one }
  for (const [hash, redacts] of Object.entries(other))
    joined[hash] = moreOf(joined[hash] ?? 'quotes', redacts)
  return joined
}

/**
 * Returns what stays erased of a source's fields, because its speakers are suppressed: this request
 * may repeat their words without their quotes.
 */
export function staysErased(
  erased: Record<string, Redacts>,
  { isSuppressed = () => false }: Pick<InputThread, 'isSuppressed'>,
): Redacts {
  const kept = Object.entries(erased).filter(([hash]) => isSuppressed(hash))
  return mostOf(kept.map(([, redacts]) => redacts))
}

const mostOf = (all: readonly Redacts[]) => all.reduce(moreOf, 'quotes')

/** Sorts after all positions, so that a redaction moves no quote. */
const NO_POSITION = '~'

/**
 * Converts a redaction to the form of a post that changes the texts and speakers of stored quotes.
 */
export function inputRedaction(
  { id, stamp, redelivered, deletes, suppressions }: DeleteRequest,
  { _id: sourceId, tenant, service, externalId, ...stored }: SourceDocument,
): InputThread {
  const { quoteIds = [], redacts = 'quotes', speaker } = deletes
  return {
    ...{ id, stamp, redelivered },
    names: { _id: sourceId, tenant, service, externalId },
    source: { title: ERASED, ...erasedWith(redacts, stored) },
    quotes: quoteIds.map((_id) => ({
      names: { _id, sourceId, position: NO_POSITION },
      values: REDACTED,
    })),
    redacts,
    ...(speaker !== undefined && { erased: { [speaker]: redacts } }),
    ...(suppressions && { isSuppressed: (hash: string) => suppressions.has(hash, service) }),
  }
}

/** Returns the fields to store: with a date instead of its text, and without the exported id. */
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
  { id: insertedBy, names, source, stamp, digest, erased }: InputThread,
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
      ...(erased && source.title === ERASED && { erased }),
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
