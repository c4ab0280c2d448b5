import { type AcceptedAnswer, MESSAGE } from './answers.ts'
import { effectiveScore, type Votes } from './effective-score.ts'
import type { Thread } from './thread.ts'

/** The answer to a caller that does not wait: what was sent, normalised, and nothing that only the store knows. */
export function acceptedAnswer({ source, quotes }: Thread): AcceptedAnswer {
  const sent = withoutDate(source)
  return {
    message: MESSAGE,
    source: { ...sent, description: sent.description ?? null, ...shownScore(source) },
    quotes: quotes.map((quote) => ({ ...withoutDate(quote), ...shownScore(quote) })),
  }
}

function withoutDate<T extends { createdAt?: string }>({ createdAt: _, ...fields }: T): Omit<T, 'createdAt'> {
  return fields
}

function shownScore(votes: Votes): { score?: number } {
  const score = effectiveScore(votes)
  return score === undefined ? {} : { score }
}
