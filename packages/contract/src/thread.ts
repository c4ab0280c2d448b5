import type { QuoteRequest, ThreadRequest } from './thread-request-schema.ts'

// A field that was not given is a key that is not there: null stands for that in requests alone.
type Given<T> = { [K in keyof T]: NonNullable<T[K]> }

/** A source as it was sent, normalised: dates in UTC with milliseconds, `score` only where it was sent. */
export type SourceFields = Given<Omit<ThreadRequest, 'quotes'>>

/** A quote as it was sent, normalised as its source is, with `username` taken for `speaker`. */
export type QuoteFields = Given<Omit<QuoteRequest, 'username'>>

/** One accepted request. No two of its quotes have the same `externalId`. */
export type Thread = { source: SourceFields; quotes: QuoteFields[] }
