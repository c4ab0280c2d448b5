// Tests of the iMessage format, on databases that are made here.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync, type SQLInputValue } from 'node:sqlite'
import { describe, expect, test } from 'vitest'
import { filesByFormat, inputFile, readAll, recognises } from '../read-all.test-support.ts'
import { imessageFormat } from './imessage.ts'

const SECONDS = 736_248_600 // 2024-05-01T09:30:00Z in Apple's time
const OLD = 'guid TEXT, text TEXT, handle_id INTEGER, date INTEGER, is_from_me INTEGER'
const NEW = `${OLD}, attributedBody BLOB, item_type INTEGER DEFAULT 0, associated_message_type INTEGER DEFAULT 0,
  thread_originator_guid TEXT, date_edited INTEGER DEFAULT 0, date_retracted INTEGER DEFAULT 0`

type Message = Record<string, SQLInputValue>
const message = {
  guid: 'G1',
  text: 'Cold oven',
  handle_id: 1,
  date: `${SECONDS}123000000`,
  is_from_me: 0,
}

/** Makes a database whose messages are of the chat, and returns its bytes. */
function databaseOf(
  messages: readonly Message[],
  { columns = NEW, inChat = true, files = [] as string[] } = {},
): Buffer {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-test-'))
  const database = new DatabaseSync(join(folder, 'chat.db'))
  database.exec(`
    CREATE TABLE message (ROWID INTEGER PRIMARY KEY, ${columns});
    CREATE TABLE handle (ROWID INTEGER PRIMARY KEY, id TEXT); INSERT INTO handle VALUES (1, '+15550100');
    CREATE TABLE chat (ROWID INTEGER PRIMARY KEY, chat_identifier TEXT, display_name TEXT);
    INSERT INTO chat VALUES (1, 'chat77', 'Bakers');
    CREATE TABLE chat_message_join (chat_id INTEGER, message_id INTEGER);
    CREATE TABLE attachment (ROWID INTEGER PRIMARY KEY, transfer_name TEXT, filename TEXT, mime_type TEXT);
    CREATE TABLE message_attachment_join (message_id INTEGER, attachment_id INTEGER);`)
  for (const [at, one] of messages.entries()) {
    const names = Object.keys(one)
    const sql = `INSERT INTO message (${names.join()}) VALUES (${names.map(() => '?').join()})`
    database.prepare(sql).run(...Object.values(one))
    if (inChat) database.prepare('INSERT INTO chat_message_join VALUES (1, ?)').run(at + 1)
  }
  for (const [at, name] of files.entries()) {
    database.prepare('INSERT INTO attachment VALUES (?, ?, NULL, NULL)').run(at + 1, name)
    database.prepare('INSERT INTO message_attachment_join VALUES (1, ?)').run(at + 1)
  }
  database.close()
  const bytes = readFileSync(join(folder, 'chat.db'))
  rmSync(folder, { recursive: true })
  return bytes
}

/** Wraps a text as `attributedBody` does. */
function bodyOf(text: string): Buffer {
  const bytes = Buffer.from(text)
  const length = Buffer.from([bytes.length])
  const long = Buffer.from([0x81, bytes.length & 0xff, bytes.length >> 8])
  const head = Buffer.from(
    '\x04\x0bstreamtyped\x81\xe8\x03\x84\x01@\x84\x84\x84\x12NSAttributedString\0',
    'latin1',
  )
  const name = Buffer.from(
    '\x84\x84\x08NSObject\0\x85\x92\x84\x84\x84\x08NSString\x01\x94\x84\x01+',
    'latin1',
  )
  return Buffer.concat([
    head,
    name,
    bytes.length < 0x80 ? length : long,
    bytes,
    Buffer.from('\x86\x84\x02iI\x01', 'latin1'),
  ])
}

const find = (...args: Parameters<typeof databaseOf>) =>
  readAll(imessageFormat, [inputFile('Messages/chat.db', databaseOf(...args))])

test('recognises the database of a Mac and of a backup by name and content', async () => {
  const bytes = databaseOf([])
  for (const name of [
    'chat.db',
    'Library/SMS/sms.db',
    '3d/3d0d7e5fb2ce288813306e4d4636395e047a3d28',
  ])
    expect(await recognises(imessageFormat, inputFile(name, bytes))).toBe(true)
  expect(await recognises(imessageFormat, inputFile('other.db', bytes))).toBe(false)
  expect(await recognises(imessageFormat, inputFile('chat.db', 'text'))).toBe(false)
})

test('a day of a chat is a source; addresses stay as they are, and own messages are of Me', async () => {
  const own = { ...message, guid: 'G2', is_from_me: 1, handle_id: 0, thread_originator_guid: 'G1' }
  const found = await find([message, own], { files: ['oven.heic'] })
  expect(found.pieces[0]).toMatchObject({
    service: 'imessage',
    externalId: 'chat77/2024-05-01',
    fields: { title: 'Bakers, 2024-05-01', channelName: 'Bakers', channelId: 'chat77' },
  })
  const createdAt = '2024-05-01T09:30:00.123Z'
  expect(found.quotes('chat77/2024-05-01')).toEqual([
    {
      externalId: 'G1',
      text: 'Cold oven',
      createdAt,
      speaker: '+15550100',
      attachments: ['oven.heic'],
    },
    { externalId: 'G2', text: 'Cold oven', createdAt, speaker: 'Me', replyingTo: 'G1' },
  ])
})

test('old databases count seconds and have fewer columns', async () => {
  const { pieces } = await find([{ ...message, date: SECONDS }], { columns: OLD })
  expect(pieces[0]?.quotes[0]?.createdAt).toBe('2024-05-01T09:30:00.000Z')
})

test.each(['Short 🍞', 'x'.repeat(127), 'é'.repeat(64), 'long '.repeat(100).trim()])(
  'a text in attributedBody is read: %s',
  async (text) => {
    const { pieces } = await find([
      { ...message, text: null, attributedBody: bodyOf(`\uFFFC${text}`) },
    ])
    expect(pieces[0]?.quotes[0]?.text).toBe(text)
  },
)

test('a body that is cut gives no text', async () => {
  const body = bodyOf('Short')
  for (const length of [0, 30, 60, body.length - 10]) {
    const { pieces } = await find([
      { ...message, text: null, attributedBody: body.subarray(0, length) },
    ])
    expect(pieces[0]?.quotes[0]?.text).toBe('')
  }
})

test('tapbacks, notices and messages that were unsent are counted, an edited message has its last text', async () => {
  const found = await find([
    { ...message, guid: 'G3', associated_message_type: 2001 },
    { ...message, guid: 'G4', item_type: 2 },
    { ...message, guid: 'G7', item_type: 2n ** 63n - 1n },
    { ...message, guid: 'G5', text: null, date_edited: `${SECONDS}999000000` },
    { ...message, guid: 'G6', text: null, date_retracted: `${SECONDS}999000000` },
    { ...message, text: 'Warm oven', date_edited: `${SECONDS}999000000` },
    { ...message, guid: null },
    { ...message, guid: 'G8', date: 0 },
  ])
  expect(found.pieces.map(({ quotes }) => quotes[0]?.text)).toEqual(['Warm oven'])
  expect(found.noted).toEqual({
    'skipped: tapbacks and stickers on messages': 1,
    'skipped: notices, such as of who joined a chat': 2,
    'skipped: messages that were unsent': 2,
  })
  const reason = 'a message without a guid or a valid date'
  expect(found.rejected).toMatchObject([{ reason }, { reason }])
})

/** Writes a value as a binary property list, as far as those of messages need it. */
function propertyList(value: unknown): Buffer {
  const objects: Buffer[] = []
  const head = (kind: number, count: number) =>
    count < 15
      ? Buffer.from([(kind << 4) | count])
      : Buffer.from([(kind << 4) | 15, 0x11, count >> 8, count & 0xff])
  function add(one: unknown): number {
    const number = objects.push(Buffer.alloc(0)) - 1
    const list = (kind: number, count: number, parts: unknown[]) =>
      Buffer.concat([head(kind, count), Buffer.from(parts.map(add))])
    if (typeof one === 'string')
      objects[number] = Buffer.concat([head(5, one.length), Buffer.from(one)])
    else if (typeof one === 'number') objects[number] = Buffer.from([0x10, one])
    else if (Buffer.isBuffer(one)) objects[number] = Buffer.concat([head(4, one.length), one])
    else if (Array.isArray(one)) objects[number] = list(10, one.length, one)
    else
      objects[number] = list(13, Object.keys(Object(one)).length, [
        ...Object.keys(Object(one)),
        ...Object.values(Object(one)),
      ])
    return number
  }
  add(value)
  const offsets = objects.map((_, at) => 8 + Buffer.concat(objects.slice(0, at)).length)
  const table = Buffer.concat(offsets.map((offset) => Buffer.from([offset >> 8, offset & 0xff])))
  const trailer = Buffer.alloc(32)
  trailer.writeUInt8(2, 6)
  trailer.writeUInt8(1, 7)
  trailer.writeUInt32BE(objects.length, 12)
  trailer.writeUInt32BE(8 + Buffer.concat(objects).length, 28)
  return Buffer.concat([Buffer.from('bplist00'), ...objects, table, trailer])
}

describe('a message whose words stand in message_summary_info only', () => {
  const columns = `${NEW}, message_summary_info BLOB, subject TEXT`
  const edited = { ...message, text: null, date_edited: `${SECONDS}999000000` }
  const versions = (...texts: string[]) => texts.map((text) => ({ d: 1, t: bodyOf(text) }))
  const info = propertyList({
    amc: 0,
    ec: { 10: versions('Later'), 2: versions('Cool', 'Cold oven '.repeat(20)) },
    rp: [3],
  })

  test('has the last version of each of its parts', async () => {
    const { pieces, noted } = await find(
      [{ ...edited, message_summary_info: info, subject: 'Ovens' }],
      { columns },
    )
    expect(pieces[0]?.quotes[0]?.text).toBe(`Ovens\n${'Cold oven '.repeat(20)}\nLater`)
    expect(noted).toEqual({})
  })

  test('was unsent, if its parts were', async () => {
    const unsent = { ...message, text: null, message_summary_info: propertyList({ rp: [0] }) }
    const { noted } = await find([unsent], { columns })
    expect(noted).toEqual({ 'skipped: messages that were unsent': 1 })
  })

  test('has no text if the list is broken', async () => {
    const endless = propertyList({ ec: [] })
    // The list of versions becomes the object around it.
    endless.writeUInt8(0, 10)
    const lists = Array.from({ length: 10 }, (_, at) => info.subarray(0, at * 50))
    const { pieces, noted } = await find(
      [...lists, endless].map((list, at) => ({
        ...edited,
        guid: `G${at}`,
        message_summary_info: list,
      })),
      { columns },
    )
    expect(pieces.map(({ quotes }) => quotes[0]?.text)).toEqual([])
    expect(noted).toEqual({ 'skipped: messages that were unsent': lists.length + 1 })
  })
})

test('of copies in two databases, the one that was edited later wins', async () => {
  const edited = { ...message, text: 'Warm oven', date_edited: `${SECONDS}999000000` }
  const files = [
    inputFile('old/chat.db', databaseOf([{ ...message, guid: 'G0' }, message])),
    inputFile('new/chat.db', databaseOf([edited])),
  ]
  for (const some of [files, files.toReversed()]) {
    const found = await readAll(imessageFormat, some)
    const copies = found.quotes('chat77/2024-05-01').filter(({ externalId }) => externalId === 'G1')
    expect(copies.at(-1)?.text).toBe('Warm oven')
  }
})

test('messages of no chat, and files beside the database, are counted', async () => {
  const files = [
    inputFile('chat.db', databaseOf([message], { inChat: false })),
    inputFile('Attachments/a.csv', 'a,b'),
  ]
  expect(await filesByFormat(files)).toEqual({ imessage: ['chat.db', 'Attachments/a.csv'] })
  expect((await readAll(imessageFormat, files)).noted).toEqual({
    'skipped: messages of chats that were deleted': 1,
    'skipped: files without messages: file attachments': 1,
  })
})

test('a database that is broken fails the import with a reason', async () => {
  const cut = databaseOf([message]).subarray(0, 5_000)
  await expect(readAll(imessageFormat, [inputFile('chat.db', cut)])).rejects.toThrow(
    /can't be read as the database/,
  )
})
