import assert from 'node:assert/strict'
import { describe, it } from 'vitest'
import { inputFile, readAll, recognises } from '../read-all.test-support.ts'
import { ndjsonFormat } from './sluice-formats.ts'

const thread = {
  service: 'slack',
  externalId: 'C1',
  title: 'A thread',
  quotes: [{ externalId: '1', text: 'a' }],
}
const lines = (...records: unknown[]) =>
  inputFile(
    'threads.ndjson',
    records.map((each) => (typeof each === 'string' ? each : JSON.stringify(each))).join('\n'),
  )

describe('NDJSON', () => {
  it('gives a whole thread for each line, in their order, with its line', async () => {
    const { pieces } = await readAll(ndjsonFormat, [
      lines(thread, '', { ...thread, externalId: 'C2', url: 'u' }),
    ])
    const fields = { title: 'A thread' }
    const piece = {
      ...{ kind: 'piece', service: 'slack', order: '', quotes: thread.quotes },
      isOwnForm: true,
    }
    assert.deepEqual(pieces, [
      { ...piece, externalId: 'C1', fields, place: { path: 'threads.ndjson', line: 1 } },
      {
        ...piece,
        externalId: 'C2',
        fields: { ...fields, url: 'u' },
        place: { path: 'threads.ndjson', line: 3 },
      },
    ])
  })

  it('reads a thread that is longer than a request', async () => {
    const quotes = Array.from({ length: 20_000 }, (_, index) => ({
      text: `${index} ${'x'.repeat(600)}`,
    }))
    const { pieces } = await readAll(ndjsonFormat, [lines({ ...thread, quotes }, thread)])
    assert.deepEqual(
      pieces.map((piece) => piece.quotes.length),
      [20_000, 1],
    )
  })

  it('rejects a line that is no JSON, no object or no thread, and reads on', async () => {
    const { pieces, rejected } = await readAll(ndjsonFormat, [
      lines(
        '{"service":',
        '[]',
        { ...thread, service: 'myspace' },
        { ...thread, title: ' ' },
        thread,
      ),
    ])
    assert.equal(pieces.length, 1)
    assert.deepEqual(
      rejected.map(({ place, record }) => ({ place, record })),
      [
        { place: { path: 'threads.ndjson', line: 1 }, record: '{"service":' },
        { place: { path: 'threads.ndjson', line: 2 }, record: [] },
        {
          place: { path: 'threads.ndjson', line: 3, pointer: '/service' },
          record: { ...thread, service: 'myspace' },
        },
        {
          place: { path: 'threads.ndjson', line: 4, pointer: '/title' },
          record: { ...thread, title: ' ' },
        },
      ],
    )
    assert.match(rejected[0]?.reason ?? '', /^The record is not JSON: /)
    assert.match(rejected[2]?.reason ?? '', /^service must be one of /)
  })

  it('reads numbers as ids, unless JSON rounds them', async () => {
    const quotes = [
      { externalId: 1, text: 'a' },
      { externalId: 2, replyingTo: 1, text: 'b' },
    ]
    const { pieces, rejected } = await readAll(ndjsonFormat, [
      lines(
        { ...thread, externalId: 7, quotes },
        '{"service":"x","externalId":1786123456789012345,"title":"a","quotes":[]}',
      ),
    ])
    assert.equal(pieces[0]?.externalId, '7')
    assert.deepEqual(pieces[0]?.quotes[1], { externalId: '2', replyingTo: '1', text: 'b' })
    assert.match(
      rejected[0]?.reason ?? '',
      /^externalId must be of type string\. Write an id of more than 15 digits as text/,
    )
  })

  it('rejects a line that is not UTF-8, and reads its neighbours', async () => {
    const bytes = [
      JSON.stringify(thread),
      JSON.stringify({ ...thread, title: 'caf\xe9' }),
      JSON.stringify(thread),
    ]
    const file = inputFile('threads.ndjson', Buffer.from(bytes.join('\n'), 'latin1'))
    const { pieces, rejected } = await readAll(ndjsonFormat, [file])
    assert.equal(pieces.length, 2)
    assert.deepEqual(
      rejected.map(({ reason, place }) => [reason, place.line]),
      [['The record is not UTF-8 (see --encoding).', 2]],
    )
  })

  it('replaces lone surrogates and skips quotes without text', async () => {
    const quotes = [
      { text: 'a \ud83d' },
      { text: ' ', externalId: '2' },
      { text: null },
      { text: '😀' },
    ]
    const { pieces, notes } = await readAll(ndjsonFormat, [lines({ ...thread, quotes })])
    assert.deepEqual(pieces[0]?.quotes, [{ text: 'a \ufffd' }, { text: '😀' }])
    assert.deepEqual(
      notes.map(({ kind, reason }) => `${kind}: ${reason}`),
      [
        'skipped: quotes without text',
        'skipped: quotes without text',
        'replaced: threads with lone surrogates',
      ],
    )
  })

  it('reads a thread however deep its unknown fields nest', async () => {
    const deep = `${'['.repeat(100_000)}${']'.repeat(100_000)}`
    const record = JSON.stringify({ ...thread, quotes: [{ text: '' }, { text: 'a' }] }).replace(
      '{',
      `{"x":${deep},`,
    )
    const { pieces, rejected } = await readAll(ndjsonFormat, [
      lines(record, record.replace('"text":"a"', '"text":7')),
    ])
    assert.deepEqual([pieces.length, rejected.length], [1, 1])
  })

  it('names unknown fields once a file, and the field that is meant', async () => {
    const odd = { ...thread, tags: [], quotes: [{ text: 'a', user: 'ada', colour: 'red' }] }
    const { notes } = await readAll(ndjsonFormat, [lines(odd, odd), lines(odd)])
    const names = [
      'tags is not a field of a source and was ignored.',
      'user is not a field of a quote and was ignored. Did you mean speaker? Take it with --map speaker=user.',
      'colour is not a field of a quote and was ignored.',
    ]
    assert.deepEqual(
      notes.map(({ reason }) => reason),
      [...names, ...names],
    )
  })

  it('takes fields from other names with --map and gives them to all threads with --set', async () => {
    const record = { externalId: 7, id: 'C1', subject: 'S', upVotes: 1, quotes: [{ body: 'a' }] }
    const map = new Map(Object.entries({ externalId: 'id', title: 'subject', text: 'body' }))
    const set = new Map(Object.entries({ service: 'custom', upVotes: '3' }))
    const { pieces, notes } = await readAll(ndjsonFormat, [lines(record)], { map, set })
    assert.deepEqual(
      pieces.map(({ service, externalId, fields, quotes }) => ({
        service,
        externalId,
        fields,
        quotes,
      })),
      [
        {
          service: 'custom',
          externalId: 'C1',
          fields: { title: 'S', upVotes: 3 },
          quotes: [{ text: 'a' }],
        },
      ],
    )
    assert.deepEqual(notes, [])
  })

  it('refuses --map and --set of fields that a thread does not have', async () => {
    for (const option of ['map', 'set']) {
      const reading = readAll(ndjsonFormat, [lines(thread)], {
        [option]: new Map([['subject', 'title']]),
      })
      await assert.rejects(reading, new RegExp(`--${option} names the unknown field subject`))
    }
  })

  it('is recognised by the first line', async () => {
    assert.ok(await recognises(ndjsonFormat, lines(thread, thread)))
    assert.ok(
      await recognises(ndjsonFormat, lines({ ...thread, quotes: [{ text: 'x'.repeat(100_000) }] })),
    )
    assert.ok(!(await recognises(ndjsonFormat, inputFile('a.json', JSON.stringify([thread])))))
    assert.ok(
      !(await recognises(ndjsonFormat, inputFile('a.json', JSON.stringify(thread, null, 2)))),
    )
    assert.ok(!(await recognises(ndjsonFormat, lines({ id: 1 }))))
  })
})
