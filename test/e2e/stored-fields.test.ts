import assert from 'node:assert/strict'
import type { QuoteFields, SourceFields } from '@sluice/contract'
import { beforeSuite } from '@sluice/test-support'
import { describe, test } from 'vitest'
import { shareSluice } from '../support/shared-sluice.ts'
import { type Caller, createCaller } from './support/caller.ts'
import { checkStored, type StoredRow } from './support/check-stored.ts'
import { storedIn } from './support/read-reply.ts'
import { someQuote, someThread } from './support/some-thread.ts'

const everyField = {
  channelName: 'r/keyboards',
  channelId: 'C042',
  description: 'About keyboards',
  url: 'https://example.org/1',
  createdAt: '2024-05-01T09:30:00.000Z',
  upVotes: 5,
  downVotes: 2,
  score: 40,
} satisfies Required<Omit<SourceFields, 'service' | 'externalId' | 'title'>>
const everyQuoteField = {
  externalId: 'q1',
  text: 'Hello',
  speaker: 'ada',
  createdAt: '2024-05-01T09:30:00.000Z',
  replyingTo: 'q0',
  upVotes: 5,
  downVotes: 2,
  score: 40,
} satisfies Required<QuoteFields>
const optional = Object.keys(everyField).filter(
  (name) => name !== 'createdAt' && name !== 'description',
)
const optionalOfQuote = Object.keys(everyQuoteField).filter((name) => name !== 'text')
const each = (names: string[], value: unknown) =>
  Object.fromEntries(names.map((name) => [name, value]))

const values: StoredRow[] = [
  { it: 'every field of a source is returned', send: someThread(everyField), source: everyField },
  {
    it: 'every field of a quote is returned',
    send: someQuote(everyQuoteField),
    quote: everyQuoteField,
  },
  { it: 'description is null if none was sent', send: someThread(), source: { description: null } },
  { it: 'status is TRANSCRIBED', send: someThread(), source: { status: 'TRANSCRIBED' } },
  {
    it: 'absent fields of a source are left out',
    send: someThread(),
    source: {},
    absent: optional,
  },
  {
    it: 'absent fields of a quote are left out',
    send: someThread(),
    quote: {},
    absent: optionalOfQuote,
  },
  {
    it: 'a field of a source that is null counts as absent',
    send: someThread(each(optional, null)),
    source: {},
    absent: optional,
  },
  {
    it: 'a field of a quote that is null counts as absent',
    send: someQuote(each(optionalOfQuote, null)),
    quote: {},
    absent: optionalOfQuote,
  },
  {
    it: 'a blank string counts as absent',
    send: someThread({ url: ' \t\u00a0\ufeff' }),
    source: {},
    absent: ['url'],
  },
  {
    it: 'a blank description counts as absent',
    send: someThread({ description: '' }),
    source: { description: null },
  },
  {
    it: 'a blank date counts as absent',
    send: someQuote({ createdAt: ' ' }),
    quote: {},
    absent: ['createdAt'],
  },
  {
    it: 'white space in a kept value is kept',
    send: someThread({ title: '  a \n b ' }),
    source: { title: '  a \n b ' },
  },
  { it: 'NUL is kept', send: someQuote({ text: 'a\0b' }), quote: { text: 'a\0b' } },
  {
    it: 'text of any script and any plane is kept',
    send: someThread({ title: 'ไทย 日本 🎹 é' }),
    source: { title: 'ไทย 日本 🎹 é' },
  },
  {
    it: 'names of object members are ordinary text',
    send: someQuote({ speaker: '__proto__' }),
    quote: { speaker: '__proto__' },
  },
  {
    it: 'operators of MongoDB are ordinary text',
    send: someThread({ title: '$where' }),
    source: { title: '$where' },
  },
]

const speakers: StoredRow[] = [
  {
    it: 'username is returned as speaker',
    send: someQuote({ username: 'ada' }),
    quote: { speaker: 'ada' },
    absent: ['username'],
  },
  {
    it: 'speaker overrides username',
    send: someQuote({ username: 'ada', speaker: 'eve' }),
    quote: { speaker: 'eve' },
  },
  {
    it: 'username replaces a blank speaker',
    send: someQuote({ username: 'ada', speaker: ' ' }),
    quote: { speaker: 'ada' },
  },
]

const replies: StoredRow[] = [
  {
    it: 'a reply to a quote that is not stored yet is kept',
    send: someQuote({ replyingTo: 'later' }),
    quote: { replyingTo: 'later' },
  },
  {
    it: 'a quote whose replyingTo is null is a top-level quote',
    send: someQuote({ replyingTo: null }),
    quote: {},
    absent: ['replyingTo'],
  },
  {
    it: "the first quote may carry the source's externalId",
    send: someThread({ externalId: 'own', quotes: [{ text: 'a', externalId: 'own' }] }),
    quote: { externalId: 'own' },
  },
]

const names: StoredRow[] = [
  {
    it: 'unknown fields are ignored',
    send: { ...someThread({ colour: 'red' }) },
    source: {},
    absent: ['colour'],
  },
  {
    it: 'unknown fields of quotes are ignored',
    send: someQuote({ id: 'mine', wordCount: 7 }),
    quote: {},
    absent: ['wordCount', 'colour'],
  },
  {
    it: 'a request cannot set fields of the answer',
    send: someThread({ status: 'x', wordCount: 99 }),
    source: { status: 'TRANSCRIBED', wordCount: 6 },
  },
  {
    it: 'the last of duplicate keys is stored',
    send: '{"title":"a","externalId":"twice","service":"x","quotes":[],"title":"b"}',
    source: { title: 'b' },
  },
  {
    it: '__proto__ is an unknown field',
    send: '{"__proto__":{"url":"u"},"title":"a","externalId":"p","service":"x","quotes":[]}',
    source: {},
    absent: ['url'],
  },
  {
    it: 'a lone surrogate in an unknown field is ignored',
    send: '{"a":"\\ud800","title":"a","externalId":"s","service":"x","quotes":[]}',
    source: { title: 'a' },
  },
]

// The list of the customer's specification.
const services =
  'x zendesk linear googledoc youtube slack email twitter facebook reddit file play_store app_store spreadsheet telegram discord imessage custom'
    .split(' ')
    .map(
      (service): StoredRow => ({
        it: `${service} is a service`,
        send: someThread({ service }),
        source: { service },
      }),
    )

describe('the fields of a request are stored and returned', () => {
  let caller: Caller
  beforeSuite(async (t) => {
    caller = createCaller(await shareSluice(t))
  })

  checkStored(() => caller, [...values, ...speakers, ...replies, ...names, ...services])

  test('wordCount counts the words of all quotes, in any script', async () => {
    const texts = [
      'Hello, world!',
      "don't stop",
      'สวัสดีชาวโลก',
      '今日は良い天気ですね',
      '…',
      '3.14 and 1,000',
    ]
    const { source } = storedIn(
      await caller.post(someThread({ quotes: texts.map((text) => ({ text })) })),
    )
    const segmenter = new Intl.Segmenter('en', { granularity: 'word' })
    const words = texts
      .flatMap((text) => [...segmenter.segment(text)])
      .filter(({ isWordLike }) => isWordLike)
    assert.equal(source.wordCount, words.length)
  })

  test('quotes are returned in the order of the request', async () => {
    const texts = Array.from({ length: 300 }, (_, at) => `quote ${at}`)
    const { quotes } = storedIn(
      await caller.post(someThread({ quotes: texts.map((text) => ({ text })) })),
    )
    assert.deepEqual(
      quotes.map(({ text }) => text),
      texts,
    )
  })

  test('a thread may have no quotes', async () => {
    const { source, quotes } = storedIn(await caller.post(someThread({ quotes: [] })))
    assert.equal(source.wordCount, 0)
    assert.deepEqual(quotes, [])
  })

  test('two quotes of one externalId are merged in order, at the place of the first', async () => {
    const quotes = [
      { externalId: 'a', text: 'first', speaker: 'ada' },
      { externalId: 'b', text: 'between' },
      { externalId: 'a', text: 'second', upVotes: 2 },
    ]
    const answer = storedIn(await caller.post(someThread({ quotes })))
    assert.equal(answer.quotes.length, 2)
    assert.partialDeepStrictEqual(answer.quotes[0], {
      externalId: 'a',
      text: 'second',
      speaker: 'ada',
      upVotes: 2,
      score: 2,
    })
  })
})
