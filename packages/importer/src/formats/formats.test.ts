// What holds for each format of the table: it does not compile until a new one has a line in
// EXAMPLES.
import assert from 'node:assert/strict'
import { readdir } from 'node:fs/promises'
import { basename } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { makeZip } from '@sluice/test-support'
import { describe, it } from 'vitest'
import { detectFormats } from '../input/detect-format.ts'
import { RELATIVES, rowOf } from '../input/known-relatives.ts'
import { type Format, type InputFile, UnreadableFile } from './format.ts'
import { type FormatName, formats } from './formats.ts'
import { mailFormat } from './mail/mail-format.ts'
import { chatDatabase, inputFile, readAll } from './read-all.test-support.ts'

const thread = { service: 'custom', externalId: '1', title: 'T', quotes: [{ text: 'a' }] }
const play =
  'Package Name,Star Rating,Review Text,Review Submit Millis Since Epoch\norg.example,5,Good,1714556000000\n'
const review = { type: 'customerReviews', id: '1', attributes: { rating: 5, body: 'Good' } }
const cell = (text: string) => `<table-cell value-type="string"><p>${text}</p></table-cell>`
const row = (...texts: string[]) => `<table-row>${texts.map(cell).join('')}</table-row>`
const content = `<spreadsheet><table>${row('service', 'externalId', 'text')}${row('custom', '1', 'a')}</table></spreadsheet>`

const post = { id_str: '1', full_text: 'Hi', created_at: 'Wed May 01 09:30:00 +0000 2024' }

/** Node before 22.13 has no SQLite. */
const sqlite = await import('node:sqlite').catch(() => undefined)

type Files = Readonly<Record<string, unknown>>
type Example = Files | `not applicable: ${string}`

/** The smallest export of each format that has a thread: its files by their paths. */
const EXAMPLES: Readonly<Record<FormatName, Example>> = {
  slack: {
    'users.json': [],
    'channels.json': [{ id: 'C1', name: 'general' }],
    'general/2024-05-01.json': [
      { type: 'message', user: 'U1', text: 'Hi', ts: '1714556000.000100' },
    ],
  },
  discord: {
    'c.json': {
      guild: { id: '7' },
      channel: { id: '8', name: 'general' },
      messages: [{ id: '1', timestamp: '2024-05-01T09:30:00Z', content: 'Hi' }],
    },
    'messages/c8/messages.json': [
      { ID: 2, Timestamp: '2024-05-01 09:30:00', Contents: 'Hi', Attachments: '' },
    ],
  },
  telegram: {
    'result.json': {
      name: 'Ada',
      type: 'personal_chat',
      id: 9,
      messages: [{ id: 1, type: 'message', date_unixtime: '1714556000', text: 'Hi' }],
    },
  },
  zendesk: {
    'tickets.json': {
      tickets: [{ id: 1, subject: 'T', requester_id: 1, comments: [{ id: 2, body: 'Hi' }] }],
    },
  },
  x: { 'data/tweets.js': `window.YTD.tweets.part0 = ${JSON.stringify([{ tweet: post }])}` },
  linear: {
    'issues.json': [
      { identifier: 'A-1', title: 'T', description: 'Hi', createdAt: '2024-05-01T09:30:00Z' },
    ],
  },
  youtube: {
    'v.info.json': {
      id: 'v',
      title: 'T',
      webpage_url: 'https://y.example',
      comments: [{ id: 'c', text: 'Hi' }],
    },
  },
  jira: {
    'jira.csv': 'Summary,Issue key,Issue id,Comment,Comment\nT,A-1,1,Hi,\n',
    'search.json': {
      issues: [
        { key: 'A-2', fields: { summary: 'T', comment: { comments: [{ id: '1', body: 'Hi' }] } } },
      ],
    },
  },
  googledoc: {
    'comments.json': {
      comments: [
        {
          id: 'c',
          author: { displayName: 'Ada' },
          createdTime: '2024-05-01T09:30:00Z',
          content: 'Hi',
        },
      ],
    },
  },
  facebook: {
    'messages/inbox/ada_7/message_1.json': {
      participants: [{ name: 'Ada' }],
      messages: [{ sender_name: 'Ada', timestamp_ms: 1714556000000, content: 'Hi' }],
      title: 'Ada',
      thread_path: 'inbox/ada_7',
    },
  },
  mattermost: {
    'import.jsonl': [
      { type: 'version', version: 1 },
      {
        type: 'post',
        post: { team: 't', channel: 'c', user: 'ada', message: 'Hi', create_at: 1714556000000 },
      },
    ]
      .map((line) => JSON.stringify(line))
      .join('\n'),
  },
  whatsapp: { '_chat.txt': '[31/5/2024, 09:30] Ada: Hi\n' },
  imessage: sqlite
    ? { 'Messages/chat.db': chatDatabase(sqlite, [{ guid: 'G1', text: 'Hi' }]) }
    : 'not applicable: this Node has no SQLite',
  github: {
    'issues.json': [
      { number: 1, title: 'T', body: 'Hi', html_url: 'https://github.com/a/b/issues/1' },
    ],
  },
  'app-store': { 'reviews.json': { data: [review] } },
  reddit: { RC: JSON.stringify({ id: 'k1', link_id: 't3_1', subreddit: 'bread', body: 'Hi' }) },
  mail: { '1.eml': 'From: ada@example.org\nSubject: Hi\nMessage-ID: <1@example.org>\n\nHello\n' },
  play: { 'reviews.csv': play },
  ndjson: { 'a.ndjson': JSON.stringify(thread) },
  json: { 'a.json': [thread] },
  csv: { 'a.csv': 'service,externalId,text\ncustom,1,a\n' },
  spreadsheet: {
    'a.ods': makeZip({
      mimetype: 'application/vnd.oasis.opendocument.spreadsheet',
      'content.xml': content,
    }),
  },
  rejected: {
    'a.rejected.ndjson': JSON.stringify({ reason: 'r', path: 'a.json', record: thread }),
  },
}

const examples = new Map<string, Files>(
  Object.entries(EXAMPLES).flatMap(([name, example]) =>
    typeof example === 'string' ? [] : [[name, example]],
  ),
)
const testable = formats.filter(({ name }) => examples.has(name))

it('each format has the name under which the table has it, and a title and a source of its own words', () => {
  assert.deepEqual(formats.map(({ name }) => name).toSorted(), Object.keys(EXAMPLES).toSorted())
  assert.deepEqual(
    formats.filter(({ title, sourceIs }) => title === '' || sourceIs === ''),
    [],
  )
})

it('each format has a file of tests, named after it', async () => {
  const files = await readdir(import.meta.dirname, { recursive: true })
  const tested = files.map((file) => /([^/]+?)(?:-format)?\.test\.ts$/.exec(file)?.[1])
  assert.deepEqual(
    formats.filter(({ name }) => !tested.includes(name)),
    [],
  )
})

function filesOf({ name }: Format) {
  const files = examples.get(name) ?? assert.fail(`EXAMPLES has no export of ${name}`)
  return Object.entries(files).map(([path, value]) => inputFile(path, value))
}

describe('the format', () => {
  for (const format of testable)
    it(`${format.name} recognises its example, and no other format does, and it has a thread`, async () => {
      const { read, unread, notes } = await detectFormats(
        [{ name: 'x', files: filesOf(format) }],
        formats,
      )
      const names = read.map((group) => group.format.name)
      assert.deepEqual([names, unread, notes], [[format.name], [], []])
      const { pieces, rejected } = await readAll(format, filesOf(format), { timezone: 'UTC' })
      assert.deepEqual([pieces.length > 0, rejected], [true, []])
    })
})

const UNKNOWN = { hologram: 1 }

/**
 * Yields copies of a value of JSON, or of lines of JSON, each with an unknown record in another list
 * of records.
 */
function* withUnknown(value: unknown): Generator<unknown> {
  if (typeof value === 'string' && value.startsWith('{'))
    yield `${value}\n${JSON.stringify(UNKNOWN)}`
  if (Array.isArray(value)) {
    if (value.some((one) => one === Object(one))) yield [...value, UNKNOWN]
    for (const [at, one] of value.entries())
      for (const changed of withUnknown(one)) yield value.with(at, changed)
  } else if (value?.constructor === Object)
    for (const [name, one] of Object.entries(value))
      for (const changed of withUnknown(one)) yield { ...value, [name]: changed }
}

describe('an unknown record among others', () => {
  for (const format of testable)
    it(`of ${format.name} is not dropped without a count`, async () => {
      const files = Object.entries(examples.get(format.name) ?? {})
      const foundIn = async (changed: Files) => {
        const all = Object.entries(changed).map(([path, value]) => inputFile(path, value))
        const { quotes: _, ...found } = await readAll(format, all, { timezone: 'UTC' })
        return JSON.stringify(found)
      }
      const known = await foundIn(Object.fromEntries(files))
      for (const [path, value] of files)
        for (const changed of withUnknown(value))
          assert.notEqual(
            await foundIn({ ...Object.fromEntries(files), [path]: changed }),
            known,
            JSON.stringify(changed),
          )
    })
})

it('no example is taken for a file that people have in place of an export', async () => {
  for (const format of testable)
    for (const file of filesOf(format))
      assert.equal(rowOf(RELATIVES, file.path, await buffer(file.open())), undefined, file.path)
})

/** A file whose last byte can be read, and whose checksum then differs. */
function damaged(file: InputFile): InputFile {
  async function* open() {
    yield* file.open()
    throw new UnreadableFile(file.path, 'it is damaged.', undefined)
  }
  return { ...file, open, beginning: async () => await buffer(file.open()) }
}

describe('a damaged file', () => {
  for (const format of testable)
    it(`of ${format.name} is rejected, and ends no import`, async () => {
      const { rejected } = await readAll(format, filesOf(format).map(damaged), { timezone: 'UTC' })
      const ofFiles = rejected.filter(
        ({ reason }) => reason === "The file can't be read: it is damaged.",
      )
      assert.deepEqual(
        ofFiles.map(({ place }) => place.path).toSorted(),
        filesOf(format)
          .map(({ path }) => path)
          .toSorted(),
      )
    })
})

it('the exports of all formats in one folder are told apart', async () => {
  const files = testable.flatMap((format) =>
    filesOf(format).map((file) => ({ ...file, path: `${format.name}/${file.path}` })),
  )
  const { read, unread } = await detectFormats([{ name: 'x', files }], formats)
  const found = read.map(({ format, files: some }) => [
    format.name,
    some.every(({ path }) => path.startsWith(`${format.name}/`)),
  ])
  assert.deepEqual(found.toSorted(), testable.map(({ name }) => [name, true]).toSorted())
  assert.deepEqual(unread, [])
})

/** Files of kinds that may have messages, and that no format recognises. */
const STRAYS = ['txt', 'csv', 'json', 'html', 'xlsx', 'mbox', 'eml', 'db', 'dat'].map(
  (kind) => `notes.${kind}`,
)

/**
 * Finds who reads files in the folder of an export, or files that are named one by one, by their
 * paths.
 */
async function readersOf(files: readonly InputFile[], isList: boolean) {
  const named = files.map((file) =>
    isList ? { ...file, path: basename(file.path), isNamed: true } : file,
  )
  const { read, unread } = await detectFormats(
    [{ name: 'x', files: named, ...(isList && { isList }) }],
    formats,
  )
  const readers = read.flatMap((group) =>
    group.files.map(({ path }) => [path, group.format.name] as const),
  )
  return new Map([
    ...readers,
    ...unread.map(({ name }) => [name.replace(/^x\//, ''), 'unread'] as const),
  ])
}

it('a file that is named beside others with --format is read, rejected, or named as unread', async () => {
  const silent: string[] = []
  for (const format of testable) {
    const notes = inputFile('notes.txt', 'Seventeen boats\nTwo sails\n')
    const files = [...filesOf(format), notes].map((file) => ({ ...file, isNamed: true }))
    const { read, unread } = await detectFormats(
      [{ name: 'x', files, isList: true }],
      formats,
      format.name,
    )
    const reading = readAll(format, read[0]?.files ?? [], { timezone: 'UTC' })
    const paths = await reading.then(
      ({ rejected }) => rejected.map(({ place }) => place.path),
      () => [notes.path],
    )
    if (![...paths, ...unread.map(({ name }) => name)].includes(notes.path))
      silent.push(format.name)
  }
  assert.deepEqual(silent, [])
})

/** Paths such as those of what exports have beside their messages. */
const PATHS =
  'Archive/x chats/x friends/x general/x messages/x posts/x more/schema teams users/user users_202405 v.live_chat x/index x/tickets'.split(
    ' ',
  )
const teams = { value: [{ messageType: 'message', body: { content: '17 boats' } }] }

it('a file of a program that is not read is named as unread wherever it lies in an export', async () => {
  const silent: string[] = []
  for (const format of testable.filter(({ owns }) => owns !== undefined))
    for (const path of PATHS) {
      const stray = inputFile(`${path}.json`, teams)
      const readers = await readersOf([...filesOf(format), stray], false)
      if (readers.get(stray.path) !== 'unread') silent.push(`${stray.path} in ${format.name}`)
    }
  assert.deepEqual(silent, [])
})

describe('beside an export', () => {
  for (const format of testable)
    it(`of ${format.name}, files of other formats are not its own, and files of no format are named`, async () => {
      const own = filesOf(format)
      const folder = own[0]?.path.replace(/[^/]*$/, '') ?? ''
      const within = (file: InputFile) => ({ ...file, path: `${folder}${file.path}` })
      const strays = STRAYS.map((name) => within(inputFile(name, '\x01 17 boats\n')))
      for (const isList of [false, true]) {
        const pathIn = ({ path }: InputFile) => (isList ? basename(path) : path)
        const ofStrays = await readersOf([...own, ...strays], isList)
        for (const stray of strays) assert.equal(ofStrays.get(pathIn(stray)), 'unread', stray.path)
        for (const other of testable.filter((each) => each !== format)) {
          const taken = new Set(own.map(pathIn))
          const beside = filesOf(other)
            .map(within)
            .filter((file) => !taken.has(pathIn(file)))
          const readers = await readersOf([...own, ...beside], isList)
          for (const file of beside) {
            const reader = readers.get(pathIn(file))
            assert.ok(
              reader !== undefined && reader !== format.name,
              `${file.path} of ${other.name}: ${reader}`,
            )
          }
        }
      }
    })
})

/**
 * Stand, repeated, where the examples have texts and names: regular expressions and parsers go back
 * in them.
 */
const HOSTILE = [
  ...[
    ' ',
    '\n',
    '\r',
    'x ',
    'a,',
    '> ',
    ': ',
    '0:00 ',
    '1.1.24, ',
    'wrote:\n',
    '<',
    '<a',
    '<a@b> ',
    '<a>',
    '&#1',
  ],
  ...[
    '"',
    '\\"',
    '(',
    '[',
    '[a](',
    '=?',
    '=\r\n ',
    '@a ',
    ':a',
    '`',
    '*',
    '~{',
    '.a \u200E',
    'a\u0301',
    'http://',
  ],
]
const HEADERS = [
  ...[
    'From',
    'Sender',
    'To',
    'Subject',
    'Date',
    'Received',
    'Message-ID',
    'In-Reply-To',
    'References',
  ],
  ...[
    'Content-Type',
    'Content-Disposition',
    'Content-Transfer-Encoding',
    'X-Gmail-Labels',
    'X-Status',
  ],
]
const HOSTILE_HEADERS = [
  ' ',
  ' \r\n ',
  'a,',
  ': ',
  '<',
  '<a@b> ',
  '>,',
  '"',
  '\\',
  ')(',
  '=?',
  '=?x?Q?',
  ';',
  ';a*1=',
]
const LENGTH = 8 * 1024
/**
 * Less time than this is not compared: it is that of a machine which compiles, collects garbage,
 * and is busy.
 */
const LEAST_MS = 30

async function timeOf(read: () => Promise<unknown>): Promise<number> {
  const before = process.cpuUsage()
  // Whatever comes of it: only the time counts.
  await read().catch(() => {})
  const { user, system } = process.cpuUsage(before)
  return (user + system) / 1_000
}

/**
 * Asserts that four times the input takes less than eight times as long: less than half of what a
 * square takes.
 */
async function assertGrowsSlowly(read: (length: number) => Promise<unknown>, name: string) {
  let times = ''
  for (const _ of [1, 2, 3]) {
    const long = await timeOf(() => read(4 * LENGTH))
    if (long < 8 * LEAST_MS) return
    const short = await timeOf(() => read(LENGTH))
    if (long < 8 * Math.max(short, LEAST_MS)) return
    times += ` ${short.toFixed()} and ${long.toFixed()} ms;`
  }
  assert.fail(
    `${name}: the time grows faster than the input, of ${LENGTH} and ${4 * LENGTH} characters:${times}`,
  )
}

describe('the time to read hostile input grows as the input does', () => {
  for (const format of formats.filter(({ name }) => name !== 'imessage' && name !== 'spreadsheet'))
    it(`in ${format.name}`, async () => {
      for (const part of HOSTILE)
        await assertGrowsSlowly(async (length) => {
          const text = part.repeat(length / part.length)
          const files = Object.entries(examples.get(format.name) ?? {}).map(([path, value]) => {
            const whole = typeof value === 'string' ? value : JSON.stringify(value)
            const written = /\.(txt|csv|eml)$/.test(path) ? text : JSON.stringify(text).slice(1, -1)
            return inputFile(
              path,
              whole.replaceAll(/\b(Hi|Hello|Good|Ada|ada|general|T)\b/g, () => written),
            )
          })
          await detectFormats([{ name: 'x', files }], formats)
          await readAll(format, files, { timezone: 'UTC', stripQuotes: true })
        }, JSON.stringify(part))
    })

  for (const name of HEADERS)
    it(`in the header ${name} of a mail`, async () => {
      for (const part of HOSTILE_HEADERS)
        await assertGrowsSlowly(async (length) => {
          const value = part.repeat(length / part.length)
          for (const start of ['a,', 'x <a@b> ', 'a/b; c="'])
            await readAll(
              mailFormat,
              [inputFile('1.eml', `${name}: ${start}${value}x\nX: x\n\nHello`)],
              {},
            )
        }, JSON.stringify(part))
    })
})
