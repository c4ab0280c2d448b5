import assert from 'node:assert/strict'
import type { QuoteAnswer, SourceAnswer, Thread } from '@sluice/contract'
import fc from 'fast-check'
import { it } from 'vitest'
import { makeReceipt, readReceipt } from './job.ts'

const outcome = fc.constantFrom('created', 'updated', 'unchanged', 'deleted')
const ofQuote = fc.oneof(outcome, fc.constant('suppressed' as const))
const votes = { upVotes: fc.integer(), downVotes: fc.integer(), score: fc.integer() }
const date = fc.constantFrom('2024-05-01T00:00:00.000Z', '2023-01-01T00:00:00.000Z')

const quote = fc.record(
  { text: fc.string(), speaker: fc.string(), externalId: fc.string(), createdAt: date, ...votes },
  { requiredKeys: ['text'] },
)
const source = fc.record(
  {
    service: fc.constant('slack' as const),
    externalId: fc.string(),
    title: fc.string(),
    description: fc.string(),
    createdAt: date,
    ...votes,
  },
  { requiredKeys: ['service', 'externalId', 'title'] },
)
/** A request, and its answer, which has all fields of it, perhaps with newer values, and others. */
const scenario = fc
  .array(fc.tuple(quote, quote, fc.boolean(), ofQuote), { maxLength: 5 })
  .chain((quotes) =>
    fc
      .tuple(source, source, fc.boolean(), outcome, fc.nat(), date)
      .map(([sent, other, newer, sourceOutcome, wordCount, createdAt]) => {
        const thread: Thread = { source: sent, quotes: quotes.map(([input]) => input) }
        const { createdAt: _, ...fields } = newer ? { ...sent, ...other } : sent
        const answer: { source: SourceAnswer; quotes: QuoteAnswer[] } = {
          source: {
            ...fields,
            id: 's',
            description: fields.description ?? null,
            status: 'TRANSCRIBED',
            wordCount,
            createdAt,
            outcome: sourceOutcome,
          },
          quotes: quotes.map(([input, stored, changed, did], at) => ({
            ...input,
            ...(changed && stored),
            id: `q${at}`,
            outcome: did,
          })),
        }
        return { thread, answer }
      }),
  )

it('an answer follows from its request, its ids and its receipt', () => {
  fc.assert(
    fc.property(scenario, ({ thread, answer }) => {
      const receipt = JSON.parse(JSON.stringify(makeReceipt(thread, withScores(answer))))
      const ids = { source: 's', quotes: answer.quotes.map(({ id }) => id) }
      const { source, quotes } = readReceipt(thread, receipt, ids)
      assert.deepEqual({ source, quotes }, withScores(answer))
    }),
  )
})

it('says nothing of a new thread that its request says already', () => {
  const thread: Thread = {
    source: { service: 'x', externalId: 'a', title: 'b', upVotes: 3 },
    quotes: [{ text: 'c', downVotes: 2 }],
  }
  const receipt = makeReceipt(thread, {
    source: {
      ...thread.source,
      id: 's',
      description: null,
      score: 3,
      status: 'TRANSCRIBED',
      wordCount: 1,
      createdAt: 'now',
      outcome: 'created',
    },
    quotes: [{ text: 'c', downVotes: 2, score: -2, id: 'q', outcome: 'created' }],
  })
  assert.deepEqual(receipt, {
    source: { outcome: 'created', wordCount: 1, createdAt: 'now' },
    outcomes: 'c',
  })
})

/** The store shows a score if there are votes. */
function withScores<A extends { source: SourceAnswer; quotes: QuoteAnswer[] }>({
  source,
  quotes,
}: A) {
  const shown = <V extends { upVotes?: number; downVotes?: number; score?: number }>(one: V): V => {
    const known = one.upVotes !== undefined || one.downVotes !== undefined
    return one.score === undefined && known
      ? { ...one, score: (one.upVotes ?? 0) - (one.downVotes ?? 0) }
      : one
  }
  return { source: shown(source), quotes: quotes.map(shown) }
}

it('shows no score if the stored votes overflow, unlike those of the request', () => {
  const sent = { text: 'c', upVotes: Number.MAX_VALUE }
  const stored = { ...sent, downVotes: -Number.MAX_VALUE, id: 'q', outcome: 'updated' as const }
  const thread: Thread = { source: { service: 'x', externalId: 'a', title: 'b' }, quotes: [sent] }
  const about = { wordCount: 1, createdAt: 'now', outcome: 'updated' } as const
  const source = {
    ...thread.source,
    ...about,
    id: 's',
    description: null,
    status: 'TRANSCRIBED',
  } as const
  const receipt = makeReceipt(thread, { source, quotes: [stored] })
  assert.deepEqual(readReceipt(thread, receipt, { source: 's', quotes: ['q'] }).quotes, [stored])
})
