// A stored source as callers see it, and the bounds of a read.
import { type SourcePage, SourcePageSchema } from '@sluice/contract'
import type { SourceDocument } from './documents.ts'

/** A source as its readers need it. */
export type StoredSource = Pick<SourceDocument, '_id' | 'createdAt' | 'tenant'> &
  Omit<SourcePage['source'], 'id' | 'createdAt'>
/** Ends a read. A source of a million quotes is read and sorted for each of its pages. */
export const READ_MS = 10_000
/** Ends a page whose texts exceed this number of characters, so that a page fits into memory. */
export const PAGE_CHARACTERS = 4 * 1024 * 1024

/** Only the fields that callers see are read: other tools may keep large ones of their own in the same documents. */
export const SOURCE_FIELDS = { ...fieldsOf(SourcePageSchema.properties.source), tenant: 1 }
/** A source as callers see it. */
export function shownSource({ _id, tenant: _, createdAt, description, ...fields }: StoredSource): SourcePage['source'] {
  return { id: _id, ...fields, description: description ?? null, createdAt: createdAt.toISOString() }
}

/** The projection of a schema's fields. */
export function fieldsOf({ properties }: { properties: object }): Record<string, 1> {
  return Object.fromEntries(Object.keys(properties).flatMap((name) => (name === 'id' ? [] : [[name, 1] as const])))
}
