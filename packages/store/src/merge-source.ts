import { effectiveScore, type Outcome, type SourceFields } from '@sluice/contract'
import type { SourceDocument, SourceValues } from './documents.ts'
import { UNWRITTEN } from './merge-quote.ts'
import { mergeValues } from './merge-values.ts'
import { outcomeOf } from './outcome-of.ts'
import type { Said } from './store-request.ts'

/** A source as far as this batch has got with it in memory. */
export interface SourceDraft {
  stored?: SourceDocument
  document: SourceDocument
  changed: boolean
  advanced: boolean
}

/** What names a source, and so never changes. */
export interface SourceName {
  id: string
  tenant: string
  service: SourceFields['service']
  externalId: string
}

/** Merges what a request says of a source into what is stored of it. */
export function mergeSource(
  draft: SourceDraft | undefined,
  name: SourceName,
  given: SourceValues,
  said: Said,
): { draft: SourceDraft; outcome: Outcome } {
  if (draft === undefined) return { draft: newSource(name, given, said), outcome: 'created' }
  const before = draft.document
  const merged = mergeValues<SourceValues>(
    saidValues(before),
    (field) => before.meta.stamps?.[field] ?? before.meta.stamp,
    given,
    said.stamp,
  )
  const acceptedAt = earlier(before.acceptedAt, acceptedAtOf(said.stamp))
  const { values, derived } = withDerived({ ...merged.values, title: merged.values.title ?? before.title }, acceptedAt)
  const changed = merged.changed || values.createdAt.getTime() !== before.createdAt.getTime()
  const advanced = merged.advanced || acceptedAt.getTime() !== before.acceptedAt.getTime()
  const outcome = outcomeOf(said, before.meta, { changed, advanced: merged.advanced })
  if (!advanced) return { draft, outcome }
  const { stamps: _older, derived: _derived, ...kept } = before.meta
  const document: SourceDocument = {
    ...fixedParts(before),
    ...values,
    acceptedAt,
    meta: { ...kept, ...merged.stamps, ...derived, ...(changed && { changedBy: said.id }) },
  }
  return { draft: { ...draft, document, changed: draft.changed || changed, advanced: true }, outcome }
}

function newSource({ id, ...name }: SourceName, given: SourceValues, said: Said): SourceDraft {
  const acceptedAt = acceptedAtOf(said.stamp)
  const { values, derived } = withDerived(given, acceptedAt)
  return {
    document: {
      _id: id,
      ...name,
      ...values,
      acceptedAt,
      status: 'TRANSCRIBED',
      wordCount: 0,
      quoteCount: 0,
      meta: { version: UNWRITTEN, stamp: said.stamp, ...derived, insertedBy: said.id },
    },
    changed: true,
    advanced: true,
  }
}

/** Stamps are microseconds since 1970, so a stamp is also the moment of acceptance. */
function acceptedAtOf(stamp: number): Date {
  return new Date(Math.floor(stamp / 1000))
}

function earlier(one: Date, other: Date): Date {
  return other < one ? other : one
}

function withDerived(
  values: SourceValues,
  acceptedAt: Date,
): { values: SourceValues & { createdAt: Date }; derived: { derived?: string[] } } {
  const derived: string[] = []
  const full = { ...values, createdAt: values.createdAt ?? acceptedAt }
  if (values.createdAt === undefined) derived.push('createdAt')
  const score = effectiveScore(values)
  if (values.score === undefined && score !== undefined) {
    full.score = score
    derived.push('score')
  }
  return { values: full, derived: derived.length === 0 ? {} : { derived } }
}

function fixedParts({ _id, tenant, service, externalId, status, wordCount, quoteCount }: SourceDocument) {
  return { _id, tenant, service, externalId, status, wordCount, quoteCount }
}

function saidValues(document: SourceDocument): SourceValues {
  const { _id, tenant, service, externalId, acceptedAt, status, wordCount, quoteCount, meta, ...sent } = document
  const values: SourceValues = sent
  for (const name of meta.derived ?? []) if (name === 'createdAt' || name === 'score') delete values[name]
  return values
}
