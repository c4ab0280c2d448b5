import type { ThreadRequest } from '@sluice/contract'
import { countAsciiWords } from '@sluice/store/words'

type QuoteRequest = ThreadRequest['quotes'][number]

/** A document of the peers. Its `_id` is made of its names, so that it needs no other index. */
export interface PeerDocument {
  _id: string
  /** The fields that a post sets. */
  fields: Record<string, unknown>
}

/** One thread as documents. */
export interface PeerThread {
  source: PeerDocument
  quotes: PeerDocument[]
  wordCount: number
}

/** The documents that the peers store for a request. */
export function documentsOf({ quotes, createdAt, ...fields }: ThreadRequest): PeerThread {
  const wordCount = quotes.reduce((words, { text }) => words + wordsOf(text), 0)
  const sourceId = sourceIdOf(fields)
  const source = { ...fields, createdAt: dateOf(createdAt), wordCount, status: 'TRANSCRIBED' }
  return {
    source: { _id: sourceId, fields: source },
    quotes: quotes.map((quote, at) => documentOfQuote(sourceId, quote, at)),
    wordCount,
  }
}

const segmenter = new Intl.Segmenter('en', { granularity: 'word' })

function wordsOf(text: string): number {
  return (
    countAsciiWords(text) ??
    [...segmenter.segment(text)].filter(({ isWordLike }) => isWordLike).length
  )
}

/** The name of a source. */
export function sourceIdOf({
  service,
  externalId,
}: Pick<ThreadRequest, 'service' | 'externalId'>): string {
  return `${service}/${externalId}`
}

/** The name of a quote: its `externalId`, else its position. */
export function quoteIdOf(sourceId: string, { externalId }: QuoteRequest, at: number): string {
  return `${sourceId}/${externalId ?? at}`
}

function documentOfQuote(sourceId: string, quote: QuoteRequest, at: number): PeerDocument {
  const { username, speaker, createdAt, ...fields } = quote
  const _id = quoteIdOf(sourceId, quote, at)
  return {
    _id,
    fields: { ...fields, sourceId, speaker: speaker ?? username, createdAt: dateOf(createdAt) },
  }
}

function dateOf(text: string | null | undefined): Date | undefined {
  return text == null ? undefined : new Date(text)
}
