import assert from 'node:assert/strict'
import { makeZip } from '@sluice/test-support'
import { describe, it } from 'vitest'
import type { Format, FormatOptions } from '../format.ts'
import { type FormatName, formats } from '../formats.ts'
import { chatDatabase, inputFile, readAll, recognises } from '../read-all.test-support.ts'
import { createRejectedFormat } from './rejected-format.ts'

const rejectedFormat = createRejectedFormat(formats)
const thread = { service: 'slack', externalId: 'C1', title: 'A thread', quotes: [{ text: 'a' }] }
const line = (record: unknown) =>
  JSON.stringify({ reason: 'It was wrong.', path: 'export.zip', line: 7, record })

const slackFiles = (message: object) => [
  inputFile('x/channels.json', [{ id: 'C1', name: 'general' }]),
  inputFile('x/users.json', [{ id: 'U1', name: 'ada' }]),
  inputFile('x/general/2024-05-01.json', [message]),
]
const discordFile = (message: object) =>
  inputFile('c.json', {
    guild: { id: '7' },
    channel: { id: '8', name: 'general' },
    messages: [message],
  })
const telegramFile = (message: object) =>
  inputFile('result.json', { name: 'Ada', type: 'personal_chat', id: 9, messages: [message] })
const textFile = (text: string) => [inputFile('a.csv', text)]
/** Node before 22.13 has no SQLite. */
const sqlite = await import('node:sqlite').catch(() => undefined)
/** A message of iMessage as its database is read. */
const row = (guid: string | null) => {
  const [handle, subject, item_type, associated_message_type, thread_originator_guid] =
    Array(5).fill(null)
  const later = { subject, item_type, associated_message_type, thread_originator_guid }
  const edits = { date_edited: null, date_retracted: null }
  const chat = { seconds: 1_714_556_000, chat: 'chat7', chat_name: 'Ada', files: [] }
  return { id: 1, guid, is_from_me: 1, handle, ...later, ...edits, ...chat, text: 'Hi' }
}
const cell = (text: string) => `<table-cell value-type="string"><p>${text}</p></table-cell>`
/** A workbook whose only sheet has the cells of a CSV text. */
const workbookOf = (csv: string) => {
  const rows = csv
    .replaceAll('"', '')
    .split('\n')
    .map((line) => `<table-row>${line.split(',').map(cell).join('')}</table-row>`)
  const content = `<spreadsheet><table>${rows.join('')}</table></spreadsheet>`
  return makeZip({
    mimetype: 'application/vnd.oasis.opendocument.spreadsheet',
    'content.xml': content,
  })
}
const play = 'Package Name,Star Rating,Review Text,Review Submit Millis Since Epoch'
const mail = 'From: ada@example.org\nSubject: Hi\nMessage-ID: <1@example.org>\n\nHello\n'

/**
 * A record that is rejected, the same record after it was corrected, and the files that contain one
 * of them.
 */
type Correction = [wrong: unknown, right: unknown, files: (record: never) => object[]]
/** For each format at least one: a format that skips a corrected record in silence loses it. */
const CORRECTIONS: Readonly<
  Record<FormatName, readonly Correction[] | `not applicable: ${string}`>
> = {
  slack: [
    [
      { user: 'U1', text: 'Hi <@U1>' },
      { user: 'U1', text: 'Hi <@U1>', ts: '1714556000.000100', thread_ts: '1714550000.000100' },
      slackFiles,
    ],
  ],
  discord: [
    [
      { content: 'Hi', timestamp: '2024-05-01T09:30:00Z' },
      { id: '1', content: 'Hi', timestamp: '2024-05-01T09:30:00Z' },
      (message) => [discordFile(message)],
    ],
  ],
  telegram: [
    [
      { id: 1, type: 'message', text: 'Hi' },
      { id: 1, type: 'message', text: 'Hi', date_unixtime: '1714556000' },
      (message) => [telegramFile(message)],
    ],
  ],
  jira: [
    [
      'Summary,Issue key,Issue id,Created\nT,A-1,1,soon',
      'Summary,Issue key,Issue id,Created\nT,A-1,1,01/May/24 9:30 AM',
      textFile,
    ],
    [
      { key: 'A-1', self: 'https://a.example/rest/api/2/issue/1' },
      {
        key: 'A-1',
        self: 'https://a.example/rest/api/2/issue/1',
        fields: { summary: 'T', description: 'Hi', comment: {} },
      },
      (issue) => [inputFile('search.json', { issues: [issue] })],
    ],
  ],
  reddit: [
    [
      { link_id: 't3_1', body: 'Hi' },
      { id: 'k1', link_id: 't3_1', body: 'Hi' },
      (comment) => [inputFile('RC', JSON.stringify(comment))],
    ],
  ],
  github: [
    [
      { title: 'T', body: 'Hi', html_url: 'x' },
      { title: 'T', body: 'Hi', html_url: 'https://github.com/a/b/issues/1' },
      (issue) => [inputFile('a.json', [issue])],
    ],
  ],
  zendesk: [
    [
      { subject: 'T', status: 'open', requester_id: 1 },
      { id: 1, subject: 'T', status: 'open', requester_id: 1 },
      (ticket) => [inputFile('a.json', { tickets: [ticket] })],
    ],
  ],
  x: [
    [
      { id_str: '7', full_text: 'Hi' },
      { id_str: '7', full_text: 'Hi', created_at: 'Wed May 01 09:30:00 +0000 2024' },
      (tweet) => [
        inputFile(
          'data/account.js',
          'window.YTD.account.part0 = [{"account": {"username": "ada"}}]',
        ),
        inputFile('data/tweets.js', `window.YTD.tweets.part0 = [${JSON.stringify(tweet)}]`),
      ],
    ],
  ],
  facebook: [
    [
      { sender_name: 'Ada', content: 'Hi' },
      { sender_name: 'Ada', content: 'Hi', timestamp_ms: 1714556000000 },
      (message) => [
        inputFile('message_1.json', {
          participants: [{ name: 'Ada' }],
          messages: [message],
          title: 'Ada',
          thread_path: 'inbox/ada_7',
        }),
      ],
    ],
  ],
  linear: [
    [
      { identifier: 'A-1', description: 'Hi' },
      { identifier: 'A-1', description: 'Hi', title: 'T' },
      (issue) => [inputFile('a.json', [issue])],
    ],
  ],
  youtube: [
    [
      { snippet: { textDisplay: 'Hi', videoId: 'v' } },
      { id: 'c', snippet: { textDisplay: 'Hi', videoId: 'v' } },
      (comment) => [inputFile('a.json', [comment])],
    ],
  ],
  whatsapp: [
    [
      '[32/5/2024, 09:30] Ada: Hi',
      '[31/5/2024, 09:30] Ada: Hi',
      (line) => [inputFile('_chat.txt', `[30/5/2024, 09:30] Bakers: \u200EEncrypted.\n${line}`)],
    ],
  ],
  mattermost: [
    [
      { type: 'post', post: { channel: 'c', team: 't', user: 'ada', message: 'Hi' } },
      {
        type: 'post',
        post: { channel: 'c', team: 't', user: 'ada', message: 'Hi', create_at: 1714556000000 },
      },
      (post) => [inputFile('a.jsonl', JSON.stringify(post))],
    ],
  ],
  'app-store': [
    [
      { type: 'customerReviews', attributes: { rating: 5, body: 'Hi' } },
      { type: 'customerReviews', id: '1', attributes: { rating: 5, body: 'Hi' } },
      (review) => [inputFile('a.json', { data: [review] })],
    ],
  ],
  imessage: sqlite
    ? [
        [
          row(null),
          row('G1'),
          ({ guid }: ReturnType<typeof row>) => [
            inputFile('chat.db', chatDatabase(sqlite, [{ guid, text: 'Hi' }])),
          ],
        ],
      ]
    : 'not applicable: this Node has no SQLite',
  googledoc: [
    [{ content: 'Hi' }, { id: 'c', content: 'Hi' }, (comment) => [inputFile('a.json', [comment])]],
  ],
  play: [[`${play}\norg.example,5,Good,`, `${play}\norg.example,5,Good,1714556000000`, textFile]],
  csv: [
    ['externalId,service,text\n1,custom,Hi,more', 'externalId,service,text\n1,custom,Hi', textFile],
    [
      'externalId,service,text,score\n1,custom,Hi,x',
      'externalId,service,text,score\n1,custom,Hi,2',
      textFile,
    ],
  ],
  spreadsheet: [
    [
      '"service","externalId","text","score"\n"custom","1","Hi","x"',
      '"service","externalId","text","score"\n"custom","1","Hi","2"',
      (csv: string) => [inputFile('a.ods', workbookOf(csv))],
    ],
  ],
  mail: [['X-Some: thing\n\nHello\n', mail, textFile]],
  ndjson: [['{"service":', JSON.stringify(thread), textFile]],
  json: [[{ ...thread, service: 7 }, thread, (record) => [inputFile('a.json', [record])]]],
  rejected: 'not applicable: its records are those of the other formats',
}

const corrections = Object.entries(CORRECTIONS).flatMap(([name, list]) =>
  typeof list === 'string' ? [] : list.map((correction, at) => ({ name, at, correction })),
)

function formatNamed(name: string): Format {
  return formats.find((format) => format.name === name) ?? assert.fail(name)
}

async function piecesIn(
  format: Format,
  files: object[],
  options: Partial<FormatOptions> = { timezone: 'UTC' },
) {
  const { pieces, rejected } = await readAll(format, files as never, options)
  return { rejected, pieces: pieces.map(({ place: _, ...piece }) => piece) }
}

describe('a file of rejected records', () => {
  for (const { name, at, correction } of corrections) {
    const [wrong, right, filesWith] = correction
    it(`reads a corrected record of ${name} (${at}) as if it had stood corrected in its export`, async () => {
      const { rejected } = await readAll(formatNamed(name), filesWith(wrong as never) as never, {
        timezone: 'UTC',
      })
      const [first = assert.fail('nothing was rejected')] = rejected
      const { reason, place, context, record, format = name } = first
      assert.deepEqual(record, wrong)
      const lineOf = (one: unknown) =>
        JSON.stringify({ reason, format, ...place, context, record: one })
      const again = await piecesIn(rejectedFormat, [inputFile('a.rejected.ndjson', lineOf(wrong))])
      assert.deepEqual(again.rejected, [
        {
          kind: 'rejected',
          reason,
          place: { path: 'a.rejected.ndjson', line: 1, pointer: again.rejected[0]?.place.pointer },
          record: wrong,
          format,
          ...(context && { context }),
        },
      ])
      const corrected = await piecesIn(rejectedFormat, [
        inputFile('a.rejected.ndjson', lineOf(right)),
      ])
      assert.deepEqual(corrected.rejected, [])
      assert.deepEqual(
        corrected.pieces,
        (await piecesIn(formatNamed(name), filesWith(right as never))).pieces,
      )
      assert.equal(corrected.pieces.length, 1)
    })
  }

  it('puts the prefix of the import before the ids of records that never became threads', async () => {
    const answer = mail.replace('<1@example.org>', '<2@example.org>\nIn-Reply-To: <1@example.org>')
    const lines = [
      { format: 'ndjson', idPrefix: 'x/', record: thread },
      { record: thread },
      { format: 'mail', idPrefix: 'x/', record: answer },
    ].map((more) => JSON.stringify({ reason: 'r', path: 'a', ...more }))
    const { pieces } = await readAll(rejectedFormat, [
      inputFile('a.rejected.ndjson', lines.join('\n')),
    ])
    assert.deepEqual(
      pieces.map(({ externalId, references }) => [externalId, references]),
      [
        ['x/C1', undefined],
        ['C1', undefined],
        ['x/2@example.org', ['x/1@example.org']],
      ],
    )
  })

  it('gives records that are threads, or the text of one', async () => {
    const records = [thread, JSON.stringify({ ...thread, externalId: 'C2' })]
    const { pieces } = await readAll(rejectedFormat, [
      inputFile('a.rejected.ndjson', records.map(line).join('\n')),
    ])
    assert.deepEqual(
      pieces.map(({ externalId, place }) => [externalId, place]),
      [
        ['C1', { path: 'a.rejected.ndjson', line: 1, pointer: '/record' }],
        ['C2', { path: 'a.rejected.ndjson', line: 2, pointer: '/record' }],
      ],
    )
  })

  it('rejects again what is still wrong, as the record that it was', async () => {
    const records = [{ ...thread, service: 7 }, '{"service":', 'null']
    const lines = [...records.map(line), '{"reason":"none"}', 'nothing']
    const { rejected } = await readAll(rejectedFormat, [
      inputFile('a.rejected.ndjson', lines.join('\n')),
    ])
    assert.deepEqual(
      rejected.map(({ place, record }) => [place.line, place.pointer, record]),
      [
        [1, '/record/service', records[0]],
        [2, '/record', '{"service":'],
        [3, '/record', 'null'],
        [4, '/record', undefined],
        [5, undefined, 'nothing'],
      ],
    )
  })

  it('is recognised by its members', async () => {
    assert.ok(await recognises(rejectedFormat, inputFile('a', line(thread))))
    assert.ok(!(await recognises(rejectedFormat, inputFile('a', JSON.stringify(thread)))))
  })
})
