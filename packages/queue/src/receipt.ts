import {
  effectiveScore,
  MESSAGE,
  type Outcome,
  type QuoteAnswer,
  type SourceAnswer,
  type Thread,
  type ThreadAnswer,
} from '@sluice/contract'

/** What a caller is told of its thread, but for the message. */
type Stored = Pick<ThreadAnswer, 'source' | 'quotes'>

/** What of an answer does not follow from the request, so that nothing large crosses Redis twice. */
export interface Receipt {
  source: Pick<SourceAnswer, 'outcome' | 'wordCount' | 'createdAt'>
  /** A letter for each quote of the request. */
  outcomes: string
  /** Fields that are stored with another value than the request's, or that it left out. */
  sourceDiffers?: Partial<SourceAnswer>
  /** By the quote's place in the request. */
  quotesDiffer?: Record<string, Partial<QuoteAnswer>>
  /** Places of quotes, and -1 for the source, whose stored votes give no score (it overflows) though the request's alone would. */
  scoreless?: number[]
}

/** The source's place among those without a score. */
const SOURCE = -1

const LETTERS = { created: 'c', updated: 'u', unchanged: '=' } as const
const OUTCOMES: Record<string, Outcome> = { c: 'created', u: 'updated', '=': 'unchanged' }

/** Takes out of a stored thread what its request does not tell already. */
export function makeReceipt(thread: Thread, { source, quotes }: Stored): Receipt {
  const { outcome, wordCount, createdAt, id: _id, status: _status, ...fields } = source
  const sourceDiffers = differences(fields, expectedSource(thread.source))
  const quotesDiffer: Record<string, Partial<QuoteAnswer>> = {}
  const scoreless = lacksScore(fields, expectedSource(thread.source)) ? [SOURCE] : []
  let outcomes = ''
  quotes.forEach(({ id: _id, outcome, ...stored }, index) => {
    outcomes += LETTERS[outcome]
    const told = expected(thread.quotes[index])
    const differs = differences<Partial<QuoteAnswer>>(stored, told)
    if (differs !== undefined) quotesDiffer[index] = differs
    if (lacksScore(stored, told)) scoreless.push(index)
  })
  return {
    source: { outcome, wordCount, createdAt },
    outcomes,
    ...(sourceDiffers && { sourceDiffers }),
    ...(Object.keys(quotesDiffer).length > 0 && { quotesDiffer }),
    ...(scoreless.length > 0 && { scoreless }),
  }
}

/** Builds the answer from a request, its receipt and the ids that follow from the request. */
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
      ...scored(index, expected(quote)),
      text: quote.text,
      ...receipt.quotesDiffer?.[index],
      outcome: OUTCOMES[receipt.outcomes[index] ?? ''] ?? 'unchanged',
    })),
  }
}

function expectedSource({ createdAt: _, ...source }: Thread['source']) {
  return { ...source, description: source.description ?? null, ...scoreOf(source) }
}

function expected(quote: Thread['quotes'][number] | undefined): Partial<QuoteAnswer> {
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
