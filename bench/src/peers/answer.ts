import type { ThreadRequest } from '@sluice/contract'
import { quoteIdOf, sourceIdOf } from './documents.ts'

/**
 * The 200 answer of the peers: the request's fields, with the ids and the fields that only the
 * store knows.
 */
export function answerOf(
  { quotes, ...source }: ThreadRequest,
  { wordCount }: { wordCount: number },
) {
  const id = sourceIdOf(source)
  return {
    message: 'New source received successfully.',
    source: {
      id,
      description: null,
      createdAt: new Date(),
      ...source,
      wordCount,
      status: 'TRANSCRIBED',
    },
    quotes: quotes.map((quote, at) => ({ id: quoteIdOf(id, quote, at), ...quote })),
  }
}
