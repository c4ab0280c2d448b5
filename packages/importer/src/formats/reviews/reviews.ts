// What the reviews of both stores have in common: stars, a text, and the developer's reply.
import type { QuoteInput, SourceInput } from '../format.ts'
import { firstLine, present } from '../values/record-fields.ts'

const MOST_STARS = 5

export interface Review {
  externalId: string
  rating: number | undefined
  title: string | undefined
  text: string | undefined
  createdAt: string | undefined
}

/** Returns a source's fields. Stars become the description or, without words, the title. */
export function reviewFields({ rating, title, text, createdAt }: Review): SourceInput {
  const full =
    rating === undefined ? undefined : Math.min(Math.max(Math.round(rating), 0), MOST_STARS)
  const stars = full === undefined ? undefined : '★'.repeat(full).padEnd(MOST_STARS, '☆')
  const words = title ?? (text === undefined ? undefined : firstLine(text))
  return present({
    title: words ?? stars,
    description: words === undefined ? undefined : stars,
    createdAt,
  })
}

/** Returns the text of a review, if there is one, as a quote with the id of the source. */
export function reviewQuotes(
  { externalId, text, createdAt }: Review,
  speaker?: string,
): QuoteInput[] {
  return text === undefined ? [] : [{ text, externalId, ...present({ speaker, createdAt }) }]
}

/** Returns the developer's reply to a review. */
export function replyQuote(
  replyingTo: string,
  externalId: string,
  text: string,
  createdAt?: string,
): QuoteInput {
  return { text, externalId, speaker: 'Developer', replyingTo, ...present({ createdAt }) }
}
