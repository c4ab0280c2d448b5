import type { QuoteFields, SentQuote, Thread } from '@sluice/contract'
import type { PostRequest } from '@sluice/store'
import { quoteIdsOf } from '@sluice/store/ids'
import fc from 'fast-check'

const word = fc.constantFrom('one', 'two words', "it's three words", 'สวัสดีครับ')
const votes = {
  upVotes: fc.integer({ min: 0, max: 3 }),
  downVotes: fc.integer({ min: 0, max: 3 }),
  score: fc.integer({ min: -2, max: 2 }),
}
const date = fc.constantFrom('2024-05-01T00:00:00.000Z', '2024-06-01T12:30:00.000Z')

/** One that an export may have written, and those of other quotes, which a caller may make up. */
const exportedId = fc.constantFrom(
  'e'.repeat(24),
  ...quoteIdsOf('', [{ text: 'one' }, { text: 'one' }, { text: '', externalId: 'q1' }]),
)

const quote: fc.Arbitrary<SentQuote> = fc.record(
  {
    text: word,
    externalId: fc.constantFrom('q1', 'q2', 'q3'),
    speaker: fc.constantFrom('ann', 'bob'),
    createdAt: date,
    replyingTo: fc.constantFrom('q1', 'q9'),
    exportedId,
    ...votes,
  },
  { requiredKeys: ['text'] },
)

/** As the parser leaves them: no two quotes of one externalId. */
const quotes = fc.array(quote, { maxLength: 4 }).map((some) => {
  const seen = new Set<string>()
  return some.filter(
    ({ externalId }) => externalId === undefined || (!seen.has(externalId) && seen.add(externalId)),
  )
})

/** A thread of a small world, in which requests often meet. */
export function thread(externalIds: readonly string[] = ['t1']): fc.Arbitrary<Thread> {
  const source = fc.record(
    {
      service: fc.constant('slack' as const),
      externalId: fc.constantFrom(...externalIds),
      title: word,
      description: word,
      createdAt: date,
      url: fc.constantFrom('https://a.example', 'https://b.example'),
      ...votes,
    },
    { requiredKeys: ['service', 'externalId', 'title'] },
  )
  return fc.record({ source, quotes })
}

/**
 * Threads so alike that most requests repeat what is stored, which is what the source's cover is
 * for.
 */
export function tinyThread(): fc.Arbitrary<Thread> {
  const values = {
    text: fc.constantFrom('one', 'two'),
    speaker: fc.constantFrom('ann', 'ann', 'ann', 'bob'),
  }
  const known = (externalId: string) =>
    fc
      .record(values, { requiredKeys: ['text'] })
      .map((fields): QuoteFields => ({ ...fields, externalId }))
  const source = fc.record(
    {
      service: fc.constant('slack' as const),
      externalId: fc.constant('t1'),
      title: fc.constantFrom('title', 'title', 'title', 'another title'),
      url: fc.constant('https://a.example'),
    },
    { requiredKeys: ['service', 'externalId', 'title'] },
  )
  const both = fc.tuple(known('q1'), known('q2'))
  const some = fc.oneof(
    { weight: 3, arbitrary: both },
    known('q1').map((one) => [one]),
    known('q2').map((one) => [one]),
    fc.constant([]),
  )
  return fc.record({ source, quotes: some.map((list) => [...list]) })
}

/**
 * Requests in the order in which they were accepted; some repeat an earlier one under a stamp of
 * their own.
 */
export function history(
  threads: fc.Arbitrary<Thread> = thread(),
  maxLength = 8,
): fc.Arbitrary<PostRequest[]> {
  const step = fc.oneof({ weight: 3, arbitrary: threads }, { weight: 2, arbitrary: fc.nat(20) })
  return fc.tuple(threads, fc.array(step, { maxLength: maxLength - 1 })).map(([first, steps]) => {
    const said: Thread[] = [first]
    for (const one of steps) {
      const repeated = typeof one === 'number' ? said[one % said.length] : one
      if (repeated !== undefined) said.push(repeated)
    }
    return said.map((one, at) => requestOf(one, at + 1))
  })
}

/** Stamps a second apart, so that each moment of acceptance differs. */
export function requestOf(one: Thread, place: number): PostRequest {
  const digest = JSON.stringify(one)
  return {
    id: `r${place}`,
    tenant: 'acme',
    stamp: place * 1_000_000,
    redelivered: false,
    thread: one,
    digest,
  }
}
