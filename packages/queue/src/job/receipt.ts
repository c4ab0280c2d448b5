// The result of a job as it crosses Redis: a receipt for each thread. Receipt and request together make the answer.
import {
  effectiveScore,
  MESSAGE,
  type Outcome,
  type QuoteAnswer,
  type Thread,
  type ThreadAnswer,
} from '@sluice/contract'
import type { JobResult, Receipt } from './job.ts'

/** The answer to one thread's request, without the message. */
type Stored = Pick<ThreadAnswer, 'source' | 'quotes'>

/** Reads a result that this package wrote. */
export function parseResult(text: string): JobResult {
  return JSON.parse(text)
}

/** Stands for the source in `scoreless`. */
const SOURCE = -1

const LETTERS = { created: 'c', updated: 'u', unchanged: '=' } as const
const OUTCOMES: Record<string, Outcome> = { c: 'created', u: 'updated', '=': 'unchanged' }

/** Makes the receipt of a stored thread. */
export function makeReceipt(thread: Thread, { source, quotes }: Stored): Receipt {
  const { outcome, wordCount, createdAt, id: _id, status: _status, ...fields } = source
  const expected = expectedSource(thread.source)
  const sourceDiffers = differences(fields, expected)
  const quotesDiffer: Record<string, Partial<QuoteAnswer>> = {}
  const scoreless = lacksScore(fields, expected) ? [SOURCE] : []
  let outcomes = ''
  quotes.forEach(({ id: _id, outcome, ...stored }, index) => {
    outcomes += LETTERS[outcome]
    const expected = expectedQuote(thread.quotes[index])
    const differs = differences<Partial<QuoteAnswer>>(stored, expected)
    if (differs !== undefined) quotesDiffer[index] = differs
    if (lacksScore(stored, expected)) scoreless.push(index)
  })
  return {
    source: { outcome, wordCount, createdAt },
    outcomes,
    ...(sourceDiffers && { sourceDiffers }),
    ...(Object.keys(quotesDiffer).length > 0 && { quotesDiffer }),
    ...(scoreless.length > 0 && { scoreless }),
  }
}

/** Builds the answer from a request, its receipt, and the ids, which follow from the request. */
export function readReceipt(
  thread: Thread,
  receipt: Receipt,
  ids: { source: string; quotes: readonly string[] },
): ThreadAnswer {
  const scoreless = new Set(receipt.scoreless)
  const scored = <Fields extends { score?: number }>(at: number, fields: Fields) =>
    scoreless.has(at) ? withoutScore(fields) : fields
  const { title, description, ...source } = { ...expectedSource(thread.source), ...receipt.sourceDiffers }
  return {
    message: MESSAGE,
    source: { id: ids.source, title, description, ...scored(SOURCE, source), ...receipt.source, status: 'TRANSCRIBED' },
    quotes: thread.quotes.map((quote, index) => ({
      id: ids.quotes[index] ?? '',
      ...scored(index, expectedQuote(quote)),
      text: quote.text,
      ...receipt.quotesDiffer?.[index],
      outcome: OUTCOMES[receipt.outcomes[index] ?? ''] ?? 'unchanged',
    })),
  }
}

function expectedSource({ createdAt: _, ...source }: Thread['source']) {
  return { ...source, description: source.description ?? null, ...scoreOf(source) }
}

function expectedQuote(quote: Thread['quotes'][number] | undefined): Partial<QuoteAnswer> {
  return quote === undefined ? {} : { ...quote, ...scoreOf(quote) }
}

function scoreOf(votes: { upVotes?: number; downVotes?: number; score?: number }): { score?: number } {
  const score = effectiveScore(votes)
  return score === undefined ? {} : { score }
}

function lacksScore(stored: { score?: number }, expected: { score?: number }): boolean {
  return stored.score === undefined && expected.score !== undefined
}

function withoutScore<Fields extends { score?: number }>({ score: _, ...fields }: Fields): Omit<Fields, 'score'> {
  return fields
}

function differences<Fields extends object>(stored: Fields, expected: Partial<Fields>): Partial<Fields> | undefined {
  let found: Partial<Fields> | undefined
  for (const name in stored) {
    if (stored[name] === expected[name]) continue
    found ??= {}
    found[name] = stored[name]
  }
  return found
}
