import assert from 'node:assert/strict'
import { beforeSuite } from '@sluice/test-support'
import { describe, test } from 'vitest'
import { shareSluice } from '../support/shared-sluice.ts'
import { type Caller, createCaller } from './support/caller.ts'
import { acceptedIn, jobIn, jobPathIn, problemIn, storedIn } from './support/read-reply.ts'
import { someQuote, someThread } from './support/some-thread.ts'

describe('Prefer chooses whether to wait, and how strictly to validate', () => {
  let caller: Caller
  beforeSuite(async (t) => {
    caller = createCaller(await shareSluice(t))
  })

  const waits: [prefer: string, applied: string | null][] = [
    ['wait=20', null],
    ['respond-async, wait=20', null],
    ['wait="20"', null],
    ['wait=99999999999999999999', null],
    ['wait=soon', null],
    ['wait=-1', null],
    ['wait=1.5', null],
    ['wait', null],
    ['respond-async=no', null],
    ['return=minimal; respond-async', null],
    ['handling=lenient', null],
    ['handling=strict', 'handling=strict'],
    [',,,;;=="', null],
  ]
  for (const [prefer, applied] of waits) {
    test(`Prefer: ${prefer} gets a 200`, async () => {
      const reply = await caller.post(someThread(), { prefer })
      storedIn(reply)
      assert.equal(reply.headers.get('preference-applied'), applied)
      assert.equal(reply.headers.get('location'), null)
    })
  }

  const asyncs: [prefer: string, applied: string][] = [
    ['respond-async', 'respond-async'],
    ['Respond-Async', 'respond-async'],
    ['foo=bar, respond-async; x=1', 'respond-async'],
    ['wait=0', 'wait=0'],
    ['respond-async, wait=0', 'respond-async, wait=0'],
    ['wait=0, wait=20', 'wait=0'],
    ['respond-async, wait=soon', 'respond-async'],
    ['respond-async, handling=strict', 'respond-async, handling=strict'],
  ]
  for (const [prefer, applied] of asyncs) {
    test(`Prefer: ${prefer} gets a 202`, async () => {
      const reply = await caller.post(someThread(), { prefer })
      acceptedIn(reply)
      assert.equal(reply.headers.get('preference-applied'), applied)
      const job = jobIn(await caller.get(jobPathIn(reply)))
      assert.equal(jobPathIn(reply), `/jobs/${job.id}`)
    })
  }

  test('the body of a 202 is the normalised request, without the fields that only the store knows', async () => {
    const sent = someThread({
      createdAt: '2024-05-01',
      upVotes: 5,
      downVotes: 1,
      url: ' ',
      colour: 'red',
      quotes: [
        {
          text: 'a',
          username: 'ada',
          externalId: 'q1',
          createdAt: '2024-05-01',
          score: 7,
          colour: 'red',
        },
        { text: 'b', externalId: 'q2', replyingTo: 'q1', downVotes: 1 },
        { text: 'c', externalId: 'q1' },
      ],
    })
    assert.deepEqual(acceptedIn(await caller.post(sent, { prefer: 'respond-async' })), {
      message: 'New source received successfully.',
      source: {
        title: sent.title,
        externalId: sent.externalId,
        service: 'slack',
        description: null,
        upVotes: 5,
        downVotes: 1,
        score: 4,
      },
      quotes: [
        { text: 'c', speaker: 'ada', externalId: 'q1', score: 7 },
        { text: 'b', externalId: 'q2', replyingTo: 'q1', downVotes: 1, score: -1 },
      ],
    })
  })

  test('a caller that does not wait gets a 400 for an invalid request', async () => {
    problemIn(await caller.post({}, { prefer: 'respond-async' }), 400, 'request_invalid')
  })

  const strict: [it: string, send: unknown, pointer: string, code: string][] = [
    ['an unknown field of the source', someThread({ colour: 'red' }), '/colour', 'unknown_field'],
    [
      'an unknown field with / and ~ in it',
      someThread({ 'a/b~c': 1 }),
      '/a~1b~0c',
      'unknown_field',
    ],
    ['an unknown field of a quote', someQuote({ id: 'q' }), '/quotes/0/id', 'unknown_field'],
    [
      '__proto__',
      '{"__proto__":{},"title":"a","externalId":"b","service":"x","quotes":[]}',
      '/__proto__',
      'unknown_field',
    ],
    [
      'a reply to a quote of no such id',
      someQuote({ replyingTo: 'nobody' }),
      '/quotes/0/replyingTo',
      'unmatched_reply',
    ],
    [
      'a duplicate quote',
      someThread({
        quotes: [
          { text: 'a', externalId: 'q' },
          { text: 'b', externalId: 'q' },
        ],
      }),
      '/quotes/1/externalId',
      'duplicate',
    ],
  ]
  for (const [it, send, pointer, code] of strict) {
    test(`handling=strict refuses ${it}, and lenient handling accepts it`, async () => {
      const { errors } = problemIn(
        await caller.post(send, { prefer: 'handling=strict' }),
        400,
        'request_invalid',
      )
      assert.deepEqual(
        errors?.map((error) => [error.pointer, error.code]),
        [[pointer, code]],
      )
      storedIn(await caller.post(send))
    })
  }

  test('handling=strict accepts a reply to an earlier quote, to a later quote and to itself', async () => {
    const quotes = [
      { text: 'a', externalId: 'q1', replyingTo: 'q2' },
      { text: 'b', externalId: 'q2', replyingTo: 'q1' },
      { text: 'c', externalId: 'q3', replyingTo: 'q3' },
    ]
    storedIn(await caller.post(someThread({ quotes }), { prefer: 'handling=strict' }))
  })
})
