import assert from 'node:assert/strict'
import { Ajv } from 'ajv'
import formats from 'ajv-formats'
import { describe, it } from 'vitest'
import {
  AcceptedAnswerSchema,
  acceptedAnswer,
  QuoteAnswerSchema,
  SourceAnswerSchema,
} from './answers.ts'
import { DEFAULT_LIMITS, type Thread, ThreadRequestSchema } from './thread-request.ts'

const thread: Thread = {
  source: {
    service: 'slack',
    externalId: 'C1',
    title: 'A thread',
    createdAt: '2024-05-01T00:00:00.000Z',
    upVotes: 3,
  },
  quotes: [
    {
      externalId: '1',
      text: 'a',
      speaker: 'ada',
      createdAt: '2024-05-01T00:00:00.000Z',
      upVotes: 5,
      downVotes: 2,
    },
    { text: 'b', replyingTo: '1' },
  ],
}

describe('the answer to a caller that does not wait', () => {
  it('has the sent fields, without dates, with scores, and with null for an absent description', () => {
    assert.deepEqual(acceptedAnswer(thread), {
      message: 'New source received successfully.',
      source: {
        service: 'slack',
        externalId: 'C1',
        title: 'A thread',
        upVotes: 3,
        score: 3,
        description: null,
      },
      quotes: [
        { externalId: '1', text: 'a', speaker: 'ada', upVotes: 5, downVotes: 2, score: 3 },
        { text: 'b', replyingTo: '1' },
      ],
    })
  })

  it('keeps a description that was sent', () => {
    const described = { ...thread, source: { ...thread.source, description: 'd' } }
    assert.equal(acceptedAnswer(described).source.description, 'd')
  })

  it('has the documented shape', () => {
    const isValid = formats
      .default(new Ajv({ allowUnionTypes: true }))
      .compile(AcceptedAnswerSchema)
    assert.ok(isValid(acceptedAnswer(thread)), JSON.stringify(isValid.errors))
  })
})

it('an answer has every field that a request can have', () => {
  const { quotes, ...source } = ThreadRequestSchema(DEFAULT_LIMITS).properties
  const { username: _speaker, exportedId: _exported, ...quote } = quotes.items.properties
  assert.deepEqual(missing(source, SourceAnswerSchema), [])
  assert.deepEqual(missing(quote, QuoteAnswerSchema), [])
})

const missing = (sent: object, { properties }: { properties: object }) =>
  Object.keys(sent).filter((name) => !(name in properties))
