import assert from 'node:assert/strict'
import { describe, it } from 'vitest'
import { filesByFormat, inputFile, readAll, recognises } from '../read-all.test-support.ts'
import { zendeskFormat } from './zendesk.ts'

const ticket = {
  id: 7,
  url: 'https://example.zendesk.com/api/v2/tickets/7.json',
  subject: 'The printer burns',
  description: 'Please help.',
  status: 'open',
  requester_id: 20,
  created_at: '2024-05-01T09:30:00Z',
  updated_at: '2024-05-02T00:00:00Z',
}
const comment = {
  id: 101,
  type: 'Comment',
  author_id: 20,
  body: 'Please **help**.',
  html_body:
    '<div dir="auto"><p>Please <b>help</b>.<br>It burns &amp; <a href="https://example.org/f">smokes</a>.</p></div>',
  plain_body: 'Please help.',
  public: true,
  attachments: [],
  created_at: '2024-05-01T09:30:00Z',
}
const note = {
  ...comment,
  id: 102,
  public: false,
  html_body: '',
  plain_body: 'Not again',
  author_id: 21,
}
const event = {
  id: 900,
  ticket_id: 7,
  timestamp: 1714555800,
  updater_id: 20,
  event_type: 'Audit',
  child_events: [
    { ...comment, event_type: 'Comment' },
    { id: 103, event_type: 'Change', status: 'open' },
    { id: 104, event_type: 'Notification', body: 'Your ticket was received', subject: 'Ticket 7' },
  ],
}
const users = [
  { id: 20, name: 'Ada', role: 'end-user' },
  { id: 21, name: 'Bob', role: 'agent' },
]
const quote = {
  text: 'Please help.\nIt burns & smokes (https://example.org/f).',
  externalId: '101',
  speaker: 'Ada',
  createdAt: '2024-05-01T09:30:00.000Z',
}

const file = (content: unknown, path = 'a.json') => inputFile(path, JSON.stringify(content))
const read = (...contents: unknown[]) =>
  readAll(
    zendeskFormat,
    contents.map((content) => file(content)),
  )
const reasons = ({ notes }: Awaited<ReturnType<typeof readAll>>) =>
  notes.map(({ reason }) => reason)

describe('Zendesk', () => {
  it("reads a ticket with its comments, HTML as text, and the agents' URL", async () => {
    const { pieces } = await read({
      tickets: [{ ...ticket, comments: [comment] }],
      users,
      count: 1,
    })
    assert.deepEqual(pieces, [
      {
        kind: 'piece',
        service: 'zendesk',
        externalId: '7',
        order: '2024-05-02T00:00:00.000Z',
        fields: {
          title: 'The printer burns',
          placeholderTitle: 'Ticket #7',
          url: 'https://example.zendesk.com/agent/tickets/7',
          createdAt: '2024-05-01T09:30:00.000Z',
        },
        quotes: [quote],
        place: { path: 'a.json', line: 1, pointer: '/tickets/0' },
      },
    ])
  })

  it('counts images in a text, and keeps the address of an image that stands alone', async () => {
    const img = '<img src="https://example.org/?name=oven.png">'
    const pasted = {
      ...comment,
      html_body: `<p>See:<br>${img}${img}</p>`,
      body: 'See: ![](oven.png)',
    }
    const alone = {
      ...comment,
      id: 102,
      html_body: `<p>${img}</p>`,
      plain_body: '',
      body: '![](https://example.org/oven.png)',
    }
    const attachments = ['a.png', 'b.png'].map((file_name) => ({ file_name, inline: true }))
    const attached = { ...pasted, id: 103, attachments }
    const contents = await read({
      tickets: [{ ...ticket, comments: [pasted, alone, attached] }],
      users,
    })
    assert.deepEqual(
      contents.pieces[0]?.quotes.map(({ text }) => text),
      ['See:', '![](https://example.org/oven.png)', 'See:'],
    )
    assert.deepEqual(reasons(contents), ['images in texts', 'images in texts'])
  })

  it('never sends what was redacted in place of a stored text, title or name', async () => {
    const redacted = ['▇▇▇▇ ▇▇▇\n▇▇.', 'SCRUBBED'].map((plain_body) => ({
      ...comment,
      html_body: '',
      plain_body,
    }))
    const partly = { ...comment, html_body: '', plain_body: 'My number is ▇▇▇▇' }
    const contents = await read({
      tickets: [{ ...ticket, subject: 'SCRUBBED', comments: [...redacted, partly] }],
      users: [{ id: 20, name: 'Permanently deleted user', role: 'end-user' }],
    })
    assert.equal(contents.pieces[0]?.fields.title, undefined)
    const { speaker: _, ...rest } = quote
    assert.deepEqual(contents.pieces[0]?.quotes, [{ ...rest, text: partly.plain_body }])
    assert.deepEqual(reasons(contents), [
      'comments that were redacted',
      'comments that were redacted',
    ])
  })

  it('joins the tickets of an incremental export with the comments of ticket_events', async () => {
    const contents = await read({ ticket_events: [event] }, { tickets: [ticket] }, { users })
    assert.deepEqual(
      contents.pieces.map(({ externalId, fields, quotes }) => [externalId, fields.title, quotes]),
      [
        ['7', undefined, [quote]],
        ['7', 'The printer burns', []],
      ],
    )
    assert.deepEqual(reasons(contents), [])
  })

  it('reads the comments of audits', async () => {
    const { created_at: _, author_id: _author, ...bare } = comment
    const audit = {
      id: 900,
      ticket_id: 7,
      author_id: 20,
      created_at: '2024-05-01T09:30:00Z',
      events: [bare],
    }
    const { pieces } = await read({ audits: [audit] }, { users })
    assert.deepEqual(pieces[0]?.quotes, [quote])
  })

  it('reads comments of Facebook, and counts chats within events', async () => {
    const audit = { id: 900, ticket_id: 7, author_id: 20, created_at: '2024-05-01T09:30:00Z' }
    const chat = { type: 'ChatStartedEvent', value: { history: [{ message: 'Hi' }] } }
    const events = [{ ...comment, type: 'FacebookComment' }, chat]
    const { pieces, noted } = await read({ audits: [{ ...audit, events }] }, { users })
    assert.deepEqual(pieces[0]?.quotes, [quote])
    assert.deepEqual(noted, {
      'skipped: chats within events, apart from what Zendesk repeats as comments': 1,
    })
  })

  it('counts tickets whose comments are not in the input', async () => {
    const contents = await read({ tickets: [ticket] })
    assert.equal(contents.pieces.length, 1)
    assert.match(
      reasons(contents).join(),
      /^tickets whose comments are not in the input \(export ticket_events/,
    )
    assert.equal(reasons(contents)[1], 'descriptions of tickets without comments')
    assert.deepEqual(reasons(await read({ tickets: [ticket] }, [{ ...comment, ticket_id: 7 }])), [])
  })

  it('reads tickets without a status, and counts descriptions that no comment repeats', async () => {
    const { status: _, ...bare } = ticket
    const contents = await read({
      tickets: [
        { ...bare, comments: [] },
        { ...bare, id: 8, comments: [comment] },
      ],
    })
    assert.deepEqual(
      contents.pieces.map(({ externalId, quotes }) => [externalId, quotes.length]),
      [
        ['7', 0],
        ['8', 1],
      ],
    )
    assert.deepEqual(reasons(contents), ['descriptions of tickets without comments'])
  })

  it('reads lists, NDJSON, single tickets with their comments, and comments that name their ticket', async () => {
    const whole = { ...ticket, comments: [comment] }
    const ndjson = inputFile(
      'a.json',
      [whole, whole].map((each) => JSON.stringify(each)).join('\n'),
    )
    const single = { ticket, comments: [comment], users }
    const apart = [[ticket], [{ ...comment, ticket_id: 7 }]].map((each) => file(each))
    for (const [files, pieces] of [
      [[file([whole])], 1],
      [[ndjson], 2],
      [[file(single)], 1],
      [[file([single, single])], 2],
      [apart, 2],
    ] as const) {
      const contents = await readAll(zendeskFormat, files)
      assert.equal(contents.pieces.length, pieces)
      assert.deepEqual(
        contents.pieces.flatMap(({ quotes }) => quotes.map(({ externalId }) => externalId)).at(-1),
        '101',
      )
      assert.deepEqual(contents.rejected, [])
    }
  })

  it('reads comments in a list beside the tickets', async () => {
    const files = [
      inputFile('a.json', { tickets: [ticket], comments: [{ ...comment, ticket_id: 7 }], users }),
    ]
    const { pieces, noted } = await readAll(zendeskFormat, files)
    assert.deepEqual(
      pieces.flatMap(({ quotes }) => quotes),
      [quote],
    )
    assert.deepEqual(noted, {})
  })

  it('orders the versions of a ticket by updated_at', async () => {
    const { pieces } = await read({
      tickets: [{ ...ticket, subject: 'New', updated_at: '2024-05-03T00:00:00Z' }, ticket],
    })
    const [last] = pieces.sort((a, b) => (a.order < b.order ? 1 : -1))
    assert.equal(last?.fields.title, 'New')
  })

  it('skips deleted tickets and their comments, unless they were restored later', async () => {
    const deleted = { ...ticket, status: 'deleted', updated_at: '2024-05-03T00:00:00Z' }
    const contents = await read({ ticket_events: [event] }, { tickets: [ticket, deleted] })
    assert.deepEqual(contents.pieces, [])
    assert.deepEqual(reasons(contents), [
      'comments of tickets that were deleted',
      'tickets that were deleted',
      'tickets that were deleted',
    ])
    const restored = { ...ticket, updated_at: '2024-05-04T00:00:00Z' }
    assert.equal(
      (await read({ ticket_events: [event] }, { tickets: [restored, deleted] })).pieces.length,
      3,
    )
  })

  it('takes internal notes only if asked to', async () => {
    const files = [file([{ ...ticket, comments: [comment, note] }]), file(users)]
    const contents = await readAll(zendeskFormat, files)
    assert.deepEqual(
      contents.pieces[0]?.quotes.map(({ externalId }) => externalId),
      ['101'],
    )
    assert.deepEqual(reasons(contents), ['internal notes (take them with --internal-notes)'])
    const all = await readAll(zendeskFormat, files, { internalNotes: true })
    assert.deepEqual(
      all.pieces[0]?.quotes.map(({ text, speaker }) => [speaker, text]),
      [
        ['Ada', quote.text],
        ['Bob', 'Not again'],
      ],
    )
  })

  it('names the attachments of a comment, and skips one with nothing at all', async () => {
    const empty = { ...comment, body: '', html_body: '<p></p>', plain_body: '' }
    const attachments = [{ file_name: 'smoke.png' }]
    const contents = await read([{ ...ticket, comments: [empty, { ...empty, attachments }] }])
    assert.deepEqual(
      contents.pieces[0]?.quotes.map(({ text, attachments: names }) => [text, names]),
      [['', ['smoke.png']]],
    )
    assert.deepEqual(reasons(contents), ['comments without text'])
  })

  it("shows an author by the comment's own name, else by id, where the user is not in the input", async () => {
    const mailed = { ...comment, via: { source: { from: { name: 'Ada of the mail' } } } }
    const { pieces } = await read([{ ...ticket, comments: [mailed, comment] }])
    assert.deepEqual(
      pieces[0]?.quotes.map(({ speaker }) => speaker),
      ['Ada of the mail', '20'],
    )
  })

  it('counts other records, and rejects those without a ticket', async () => {
    const contents = await read([
      { id: 1, name: 'Support' },
      { ...ticket, id: null },
      { ...event, ticket_id: undefined },
      comment,
    ])
    assert.deepEqual(reasons(contents), ['records other than tickets and comments'])
    assert.deepEqual(
      contents.rejected.map(({ place }) => place.pointer),
      ['/1', '/2', '/3'],
    )
  })

  it('rejects comments of an answer that names no ticket', async () => {
    const { rejected } = await read({ comments: [comment, comment], count: 2 })
    assert.equal(rejected.length, 2)
  })

  it('is recognised by its members, and files of users and organisations beside it belong to it', async () => {
    for (const content of [
      [ticket],
      ticket,
      { tickets: [ticket] },
      { ticket },
      { ticket_events: [event] },
    ])
      assert.ok(await recognises(zendeskFormat, file(content)))
    assert.ok(!(await recognises(zendeskFormat, file({ users }))))
    const files = [file({ organizations: [] }), file({ users }), file([ticket])]
    assert.deepEqual(Object.keys(await filesByFormat(files)), ['zendesk'])
  })

  it('takes names from the tickets, if the export has no users, and lets a list of users win', async () => {
    const people = { requester: { id: 20, name: 'Ada' }, assignee: { id: 21, name: 'Robert' } }
    const more = { id: 103, body: 'Me too', author_id: 22, author: { id: 22, name: 'Cy' } }
    const first = { ...ticket, ...people, comments: [comment, more] }
    const second = { ...ticket, id: 8, comments: [{ ...comment, id: 201, author_id: 21 }] }
    const { pieces } = await read(second, first, { users: users.slice(1) })
    assert.deepEqual(
      pieces.flatMap(({ quotes }) => quotes.map(({ speaker }) => speaker)),
      ['Bob', 'Ada', 'Cy'],
    )
  })

  it('reads what was said in a call, and what a requester wrote with a rating', async () => {
    const call = {
      ...comment,
      type: 'VoiceComment',
      html_body: '',
      plain_body: 'Call',
      data: { transcription_text: 'It burns' },
    }
    const rated = {
      ...ticket,
      satisfaction_rating: { id: 5, score: 'bad', comment: 'Too late' },
      comments: [call, { ...call, id: 9, author_id: -1 }],
    }
    const { pieces } = await read({ tickets: [rated], users })
    assert.deepEqual(
      pieces[0]?.quotes.map(({ text, externalId, speaker }) => [text, externalId, speaker]),
      [
        ['Call\nIt burns', '101', 'Ada'],
        ['Call\nIt burns', '9', undefined],
        ['Too late', 'satisfaction/5', 'Ada'],
      ],
    )
  })
})
