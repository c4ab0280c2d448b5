import assert from 'node:assert/strict'
import { createThreadParser, DEFAULT_LIMITS, type Limits } from '@sluice/contract'
import { test } from 'vitest'
import type { QuoteInput, SourceInput } from '../formats/format.ts'
import type { ThreadInput } from '../gather/gather-threads.ts'
import { createShaper } from './shape-thread.ts'

interface Given extends Partial<Pick<ThreadInput, 'service'>> {
  externalId?: string
  fields?: SourceInput
  quotes?: QuoteInput[]
  isContinued?: boolean
}

function shaper(limits: Partial<Limits> = {}, idPrefix = '') {
  const shape = createShaper({ limits: { ...DEFAULT_LIMITS, ...limits }, idPrefix })
  return ({
    service = 'slack',
    externalId = 'C1/1',
    fields = { title: 'T' },
    quotes = [],
    isContinued = false,
  }: Given) => {
    const notes: string[] = []
    const place = { path: 'file' }
    const thread: ThreadInput = {
      kind: 'piece',
      service,
      externalId,
      fields,
      quotes,
      place,
      isContinued,
    }
    return { ...shape(thread, (kind, reason) => void notes.push(`${kind}: ${reason}`)), notes }
  }
}

test('a thread within the bounds stays as it is, and notes nothing', () => {
  const quotes = [
    { text: 'a', externalId: '1', speaker: 'Ada', upVotes: 3, createdAt: '2024-05-01' },
    { text: 'b' },
  ]
  const { requests, notes } = shaper()({ fields: { title: 'T', url: 'https://x.example' }, quotes })
  assert.deepEqual(requests, [
    { service: 'slack', externalId: 'C1/1', title: 'T', url: 'https://x.example', quotes },
  ])
  assert.deepEqual(notes, [])
})

test('the moment 0 is no date, whatever format has it, and is counted', () => {
  const dates = ['1970-01-01T00:00:00.000Z', '0001-01-01T00:00:00.000Z', '1970-01-01T00:00:01.000Z']
  const quotes = dates.map((createdAt) => ({ text: 'a', createdAt }))
  const { requests, notes } = shaper()({
    fields: { title: 'T', createdAt: dates[0] ?? '' },
    quotes,
  })
  assert.deepEqual(
    requests.map((request) => [
      request.createdAt,
      ...request.quotes.map(({ createdAt }) => createdAt),
    ]),
    [[undefined, undefined, undefined, dates[2]]],
  )
  const reason = 'skipped: dates such as 1970-01-01T00:00:00Z, which programs write for none'
  assert.deepEqual(notes, [reason, reason, reason])
})

test('a person has one name, whatever marks a program adds to it', () => {
  const speakers = ['\u202AAda\u00A0Baker\u202C', ' Ada Baker', 'Ada Baker', '\u200E']
  const { requests } = shaper()({ quotes: speakers.map((speaker) => ({ text: 'a', speaker })) })
  assert.deepEqual(
    requests[0]?.quotes.map(({ speaker }) => speaker),
    ['Ada Baker', 'Ada Baker', 'Ada Baker', undefined],
  )
})

test('the prefix stands before the id of the source only', () => {
  const { requests } = shaper(
    {},
    'acme:',
  )({ quotes: [{ text: 'a', externalId: '1', replyingTo: '0' }] })
  assert.equal(requests[0]?.externalId, 'acme:C1/1')
  assert.deepEqual(requests[0]?.quotes, [{ text: 'a', externalId: '1', replyingTo: '0' }])
})

test('long ids are shortened alike in externalId and replyingTo', () => {
  const id = 'i'.repeat(600)
  const { requests, notes } = shaper()({
    quotes: [
      { text: 'a', externalId: id },
      { text: 'b', replyingTo: id },
    ],
  })
  const [first, second] = requests[0]?.quotes ?? []
  assert.equal(first?.externalId?.length, 484)
  assert.equal(second?.replyingTo, first?.externalId)
  assert.equal(notes.length, 2)
})

test('a text over the bound goes on in quotes ID~2, ID~3, whose votes the first one has', () => {
  const quote = {
    text: 'x'.repeat(25),
    externalId: 'm',
    speaker: 'Ada',
    upVotes: 2,
    replyingTo: 'r',
  }
  const { requests, notes } = shaper({ text: 10 })({ quotes: [quote] })
  assert.deepEqual(requests[0]?.quotes, [
    { text: 'x'.repeat(10), externalId: 'm', speaker: 'Ada', upVotes: 2, replyingTo: 'r' },
    { text: 'x'.repeat(10), externalId: 'm~2', speaker: 'Ada', replyingTo: 'r' },
    { text: 'x'.repeat(5), externalId: 'm~3', speaker: 'Ada', replyingTo: 'r' },
  ])
  assert.equal(notes.length, 1)
})

test('titles and names are cut, a URL that is too long is left out', () => {
  const fields = {
    title: 't'.repeat(11),
    url: `https://${'u'.repeat(20)}`,
    channelName: 'c'.repeat(11),
  }
  const { requests, notes } = shaper({ title: 10, url: 10, string: 10 })({ fields })
  assert.deepEqual(requests, [
    {
      service: 'slack',
      externalId: 'C1/1',
      title: `${'t'.repeat(9)}…`,
      channelName: `${'c'.repeat(9)}…`,
      quotes: [],
    },
  ])
  assert.equal(notes.length, 3)
})

test('a message without text becomes the names of its files, and is skipped without files', () => {
  const { requests, notes } = shaper()({
    quotes: [{ text: ' ', attachments: ['a.png', 'b.pdf'] }, { text: '' }],
  })
  assert.deepEqual(requests[0]?.quotes, [{ text: '[file: a.png]\n[file: b.pdf]' }])
  assert.deepEqual(notes, [
    'replaced: messages without text, by the names of their files',
    'skipped: messages with neither text nor files',
  ])
})

test('names of files beside a text are counted, each of them', () => {
  const { requests, notes } = shaper()({
    quotes: [{ text: 'See', attachments: ['a.png', 'b.pdf'] }],
  })
  assert.deepEqual(requests[0]?.quotes, [{ text: 'See' }])
  assert.deepEqual(notes, Array(2).fill('skipped: names of files beside a text'))
})

test('copies of messages are counted, and all sent: the store merges them', () => {
  const quotes = ['1', '2', '1', '1', undefined, undefined].map((id) => ({
    text: 'a',
    ...(id && { externalId: id }),
  }))
  const { requests, notes } = shaper()({ quotes })
  assert.deepEqual(requests[0]?.quotes, quotes)
  assert.deepEqual(notes, ['skipped: copies of messages', 'skipped: copies of messages'])
})

test('a message whose id an earlier one has with another text is an earlier version, and no copy', () => {
  const quotes = ['Bred', 'Bread', 'Bread'].map((text) => ({ text, externalId: '1' }))
  const { notes } = shaper()({ quotes })
  assert.deepEqual(notes, ['skipped: earlier versions of messages', 'skipped: copies of messages'])
  assert.deepEqual(shaper()({ service: 'email', quotes }).notes, [
    'skipped: texts of mails whose Message-ID a later mail has',
    'skipped: copies of messages',
  ])
})

test('dates in the future are counted and kept, but for those of tomorrow', () => {
  const soon = new Date(Date.now() + 3_600_000).toISOString()
  const quotes = [
    { text: 'a', createdAt: '2924-05-25T09:30:00.000Z' },
    { text: 'b', createdAt: soon },
  ]
  const { requests, notes } = shaper()({ quotes })
  assert.deepEqual(requests[0]?.quotes, quotes)
  assert.deepEqual(notes, ['doubtful: dates in the future, by more than a day'])
})

test('lone surrogates become U+FFFD wherever they stand', () => {
  const quotes = [{ text: 'a\ud83d', externalId: '1\ud83d', speaker: 's\ud83d' }]
  const { requests, notes } = shaper()({ fields: { title: 't\udc00' }, quotes })
  assert.equal(requests[0]?.title, 't\ufffd')
  assert.deepEqual(requests[0]?.quotes, [
    { text: 'a\ufffd', externalId: '1\ufffd', speaker: 's\ufffd' },
  ])
  assert.equal(notes.length, 4)
})

test('without a title the placeholder stays apart, because the stored title comes first', () => {
  const { requests, placeholderTitle } = shaper()({
    fields: { placeholderTitle: 'Thread in general' },
  })
  assert.equal(requests[0]?.title, undefined)
  assert.equal(placeholderTitle, 'Thread in general')
})

test('a thread of more quotes than a request may have goes in parts with the same fields', () => {
  const quotes = Array.from({ length: 25 }, (_, at) => ({
    text: `text ${at}`,
    externalId: String(at),
  }))
  const { requests } = shaper({ quotes: 10 })({ quotes })
  assert.deepEqual(
    requests.map(({ title, quotes: part }) => [title, part.length]),
    [
      ['T', 10],
      ['T', 10],
      ['T', 5],
    ],
  )
  assert.deepEqual(
    requests.flatMap((request) => request.quotes),
    quotes,
  )
})

test('no part has more bytes than a body may have, and the parser of the API accepts each', () => {
  const limits = { bodyBytes: 20_000 }
  const parse = createThreadParser(DEFAULT_LIMITS)
  const quotes = Array.from({ length: 100 }, (_, at) => ({
    text: '\u0001é😀'.repeat(60 + at),
    externalId: String(at),
  }))
  const { requests } = shaper(limits)({ quotes })
  assert.ok(requests.length > 3)
  for (const request of requests) {
    assert.ok(Buffer.byteLength(JSON.stringify(request)) <= limits.bodyBytes)
    assert.ok(parse(request, { strict: true }).ok)
  }
  assert.deepEqual(
    requests.flatMap((request) => request.quotes),
    quotes,
  )
})

test('a part repeats the equal quotes without ids that earlier parts have, so that each keeps its number', () => {
  const same = { text: '+1', speaker: 'Ada', upVotes: 4 }
  const other = (at: number) => ({ text: `text ${at}` })
  const { requests } = shaper({ quotes: 3 })({ quotes: [same, other(1), other(2), same, same] })
  const repeated = { text: '+1', speaker: 'Ada' }
  assert.deepEqual(
    requests.map((request) => request.quotes),
    [
      [same, other(1), other(2)],
      [repeated, same, same],
    ],
  )
})

test('equal quotes are told apart over the pieces of a source that memory does not hold', () => {
  const shape = shaper()
  const same = { text: '+1' }
  const first = shape({ quotes: [same], isContinued: true })
  const second = shape({ quotes: [same] })
  const next = shape({ quotes: [same] })
  assert.deepEqual(
    [first, second, next].map(({ requests }) => requests[0]?.quotes.length),
    [1, 2, 1],
  )
})
