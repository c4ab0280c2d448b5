import assert from 'node:assert/strict'
import type { QuoteFields } from '@sluice/contract'
import type { PostRequest, StoreRequest } from '@sluice/store'
import { sourceIdOfRequest } from '@sluice/store/ids'
import { it } from 'vitest'
import { scale } from '../support/scale.ts'
import { explore } from './explorer/explore.ts'
import {
  historyOf as createHistory,
  type Delivery,
  type History,
  workerOf,
} from './explorer/history.ts'
import type { Break } from './explorer/process.ts'
import { requestOf } from './support/histories.ts'

// Histories that broke an earlier protocol, or a candidate for one: each in every interleaving of
// its decisive steps.

const quote = (externalId: string, text = 'two words'): QuoteFields => ({ externalId, text })
const requestFor = (externalId: string, place: number, ...quotes: QuoteFields[]): PostRequest =>
  requestOf({ source: { service: 'slack', externalId, title: 'title' }, quotes }, place)
const request = (place: number, ...quotes: QuoteFields[]) => requestFor('t1', place, ...quotes)
const deliver = (...places: number[]): Delivery => ({ places, after: 0, forgets: false })
const deliverLater = (...places: number[]): Delivery => ({ ...deliver(...places), after: 1_000 })

/** @param workers are, for each process, its lanes of deliveries. */
const historyOf = (requests: StoreRequest[], workers: Delivery[][][]) =>
  createHistory(requests, workers.map(workerOf))

/** All lists of this length of numbers below `base`. */
function* choicesOf(length: number, base: number): Generator<number[]> {
  for (let at = 0; at < base ** length; at++) {
    const digits = at.toString(base).padStart(length, '0')
    yield [...digits].map((digit) => Number.parseInt(digit, base))
  }
}

/**
 * The commands of this history by the processes that sent them, in the order in which they took
 * effect.
 */
async function commandsOf(history: History): Promise<string[]> {
  const commands: string[] = []
  await explore(history, (line) => commands.push(/p\d+: \w+ \w+/.exec(line)?.[0] ?? line))
  return commands.filter((command) => !command.endsWith('next of'))
}

it('a cover, an append that is paused before its quotes, and an edit of the appended quote keep the laws', async () => {
  const requests = [
    request(1, quote('q1'), quote('q2')),
    request(10, quote('q3')),
    request(20, quote('q3', 'three other words')),
    request(30, quote('q1'), quote('q2')),
  ]
  const history = historyOf(requests, [[[deliver(0), deliver(1)]], [[deliver(3)]], [[deliver(2)]]])
  // The commands of the first process stand last among three: it stores the thread, and opens it
  // for the append.
  const chosen = [0, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2]
  const commands = await commandsOf({ ...history, choices: chosen })
  assert.deepEqual(commands.slice(0, 11), [
    'p1: find sources',
    'p1: insert sources',
    'p1: insert quotes',
    'p1: insert sources',
    'p1: find sources',
    'p1: versions sources',
    'p1: update writers',
    'p1: find quotes',
    'p1: find sources',
    'p1: update sources',
    'p2: find sources',
  ])
  for (const choices of choicesOf(scale(6, 7), 3))
    await explore({ ...history, choices: [...chosen, ...choices] })
})

it('a sum by another process during the second of two batches of one process, beside a third process, keeps the laws', async () => {
  const requests = [
    request(1, quote('q1')),
    request(2, quote('q2')),
    request(3, quote('q3'), quote('q4')),
    request(4, quote('q5')),
  ]
  // The second process gets the first request again, and sums if its token is still in the source.
  const history = historyOf(requests, [
    [[deliver(0), deliver(1)], [deliver(2)]],
    [[deliver(0)]],
    [[deliver(3)]],
  ])
  let sums = 0
  for (const choices of choicesOf(scale(5, 6), 4)) {
    const commands = await commandsOf({ ...history, choices: [0, 3, 3, ...choices] })
    if (commands.some((command) => command.includes('p2: sum'))) sums += 1
  }
  assert(sums > 0, 'no history has the sum')
})

it('an opening that another process writes over before its own process sees that it was not refused keeps the laws', async () => {
  const requests = [
    requestFor('t1', 1, quote('q1')),
    requestFor('t2', 2, quote('q1')),
    requestFor('t1', 3, quote('q2')),
    requestFor('t2', 4, quote('q2')),
    requestFor('t1', 5, quote('q3')),
    requestFor('t2', 6, quote('q3')),
  ]
  const lanes = [[deliver(0, 1), deliverLater(2, 3)], [deliverLater(4)], [deliverLater(5)]]
  const history = historyOf(
    requests,
    lanes.map((lane) => [lane]),
  )
  const chosen = [
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 1, 0, 1, 0, 0, 1, 1, 0, 0, 0, 1, 2, 2, 0, 1, 1,
  ]
  const commands = await commandsOf({ ...history, choices: chosen })
  // The second process opens one of two threads before the first one does. So the first one looks
  // whose versions are stored; before that, the third one opens the other thread.
  assert.deepEqual(commands.slice(11, 20), [
    'p2: update sources',
    'p1: find sources',
    'p1: update sources',
    'p3: find sources',
    'p2: insert quotes',
    'p3: find writers',
    'p3: find quotes',
    'p3: update sources',
    'p1: versions sources',
  ])
  for (const choices of choicesOf(scale(4, 6), 4))
    await explore({ ...history, choices: [...chosen, ...choices] })
})

it('a repair of a thread that a dead process left half-written, before another request with the same quotes, keeps the laws', async () => {
  const both = [quote('q1'), quote('q2')]
  const repairs = [{ skew: 0, after: 150_000, faults: [] }]
  // Bit n of the share stands for the n-th quote that the dead process has written.
  for (const share of [0, 1, 2]) {
    const death: Break = { atWrite: 2, kind: 'death', share, rest: 'lost' }
    const dying = { ...workerOf([[deliver(0)]]), faults: [death] }
    const workers = [dying, workerOf([[{ ...deliver(1), after: 300_000 }]])]
    const history = {
      ...createHistory([request(1, ...both), request(2, ...both)], workers),
      repairs,
    }
    const commands = await commandsOf(history)
    const decisive = commands.filter((command) =>
      /death|p3: sum|p2: find|p2: insert quotes/.test(command),
    )
    assert.deepEqual(
      decisive.map((command) => /p\d: .*?(?= \[|$)/.exec(command)?.[0]),
      [
        'p1: death',
        'p3: sum',
        'p3: sum',
        'p2: find sources',
        'p2: find quotes',
        'p2: insert quotes',
      ],
    )
    for (const choices of choicesOf(scale(3, 6), 3)) await explore({ ...history, choices })
  }
})

it('a post that another delivery replaced after its deletion, and that stores its quotes late, leaves none', async () => {
  const post = request(1, quote('q1'))
  const deletes = { sourceId: sourceIdOfRequest(post) }
  const deletion = { id: 'r2', tenant: 'acme', stamp: 2_000_000, redelivered: false, deletes }
  const history = historyOf(
    [post, deletion],
    [[[deliver(0)], [deliver(0)]], [[deliver(1), deliver(0)]]],
  )
  const chosen = [
    3, 1, 1, 0, 0, 1, 1, 1, 3, 3, 3, 3, 3, 3, 3, 3, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 1,
  ]
  // The first process has reserved the thread. The second one deletes it, and is summing it for its
  // own delivery of the post: it has looked for quotes to remove.
  const commands = await commandsOf({ ...history, choices: chosen })
  assert.deepEqual(commands.slice(23, 26), [
    'p2: update sources',
    'p2: find quotes',
    'p1: insert quotes',
  ])
  for (const choices of choicesOf(scale(4, 6), 3))
    await explore({ ...history, choices: [...chosen, ...choices] })
})
