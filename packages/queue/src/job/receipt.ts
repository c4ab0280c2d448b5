// The result of a job as it crosses Redis: a receipt for each thread. Receipt and request together make the answer.
import type { Outcome, QuoteAnswer, Thread, ThreadAnswer, Votes } from '@sluice/contract'
import { effectiveScore, MESSAGE, STORED_STATUS } from '@sluice/contract'
import type { Receipt } from './job.ts'

const LETTERS = { created: 'c', updated: 'u', unchanged: '=' } as const
const OUTCOMES: Record<string, Outcome> = { c: 'created', u: 'updated', '=': 'unchanged' }

/** Makes the receipt of a stored thread. */
export function makeReceipt(thread: Thread, { source, quotes }: Omit<ThreadAnswer, 'message'>): Receipt {
  const { outcome, wordCount, createdAt, id: _id, status: _status, ...fields } = source
  const sourceDiffers = differences(fields, sentSource(thread.source))
  const quotesDiffer: Record<string, Partial<QuoteAnswer>> = {}
  let outcomes = ''
  quotes.forEach(({ id: _id, outcome, ...stored }, index) => {
    outcomes += LETTERS[outcome]
    const differs = differences<Partial<QuoteAnswer>>(stored, thread.quotes[index] ?? {})
    if (differs !== undefined) quotesDiffer[index] = differs
  })
  return {
    source: { outcome, wordCount, createdAt },
    outcomes,
    ...(sourceDiffers && { sourceDiffers }),
    ...(Object.keys(quotesDiffer).length > 0 && { quotesDiffer }),
  }
}

/** Builds the answer from a request, its receipt, and the ids, which follow from the request. */
export function readReceipt(
  thread: Thread,
  { source: stored, outcomes, sourceDiffers, quotesDiffer }: Receipt,
  ids: { source: string; quotes: readonly string[] },
): ThreadAnswer {
  const { title, description, ...source } = scored({ ...sentSource(thread.source), ...sourceDiffers })
  return {
    message: MESSAGE,
    source: { id: ids.source, title, description, ...source, ...stored, status: STORED_STATUS },
    quotes: thread.quotes.map((quote, index) => ({
      id: ids.quotes[index] ?? '',
      ...scored({ ...quote, ...quotesDiffer?.[index] }),
      outcome: OUTCOMES[outcomes[index] ?? ''] ?? 'unchanged',
    })),
  }
}

function sentSource({ createdAt: _, ...source }: Thread['source']) {
  return { ...source, description: source.description ?? null }
}

/** A score that was never sent follows from the stored votes. */
function scored<Fields extends Votes>(fields: Fields): Fields {
  const score = effectiveScore(fields)
  return score === undefined ? fields : { ...fields, score }
}

function differences<Fields extends Votes>(stored: Fields, sent: Partial<Fields>): Partial<Fields> | undefined {
  const score = effectiveScore({ upVotes: stored.upVotes, downVotes: stored.downVotes, score: sent.score })
  let found: Partial<Fields> | undefined
  for (const name in stored) {
    if (stored[name] === (name === 'score' ? score : sent[name])) continue
    found ??= {}
    found[name] = stored[name]
  }
  return found
}
