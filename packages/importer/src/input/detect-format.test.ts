import assert from 'node:assert/strict'
import { Readable } from 'node:stream'
import { UserError } from '@sluice/terminal'
import { test } from 'vitest'
import { type Format, type InputFile, UnreadableFile } from '../formats/format.ts'
import { formats as all } from '../formats/formats.ts'
import { detectFormats } from './detect-format.ts'

let opened = 0

function fileOf(path: string, text: string | Buffer = path): InputFile {
  const open = () => {
    opened += 1
    return Readable.from([Buffer.from(text)])
  }
  return { path, open }
}

/** A format of files that begin with its name. */
function formatOf(name: string): Format {
  return {
    name,
    title: name,
    description: name,
    sourceIs: 'a line',
    recognises: (_, beginning) => beginning.toString().startsWith(name),
    async *read() {},
  }
}

const formats = ['alpha', 'beta', 'alp'].map(formatOf)
const shown = (found: Awaited<ReturnType<typeof detectFormats>>) =>
  found.read.map(({ format, files }) => [format.name, files.map(({ path }) => path)])

test('each file is read by the first format that recognises it, and each beginning is read once', async () => {
  opened = 0
  const sets = [
    { name: 'folder', files: [fileOf('beta 1'), fileOf('beta 2')] },
    { name: 'a', files: [fileOf('alpha')] },
  ]
  assert.deepEqual(shown(await detectFormats(sets, formats, undefined)), [
    ['beta', ['beta 1', 'beta 2']],
    ['alpha', ['alpha']],
  ])
  assert.equal(opened, 3)
})

test('files of several formats are told apart, and those of one format are read together', async () => {
  const files = ['alpha 1', 'alpha 2', 'beta 1', 'alpha 3'].map((path) => fileOf(path))
  assert.deepEqual(shown(await detectFormats([{ name: 'x', files }], formats, undefined)), [
    ['alpha', ['alpha 1', 'alpha 2', 'alpha 3']],
    ['beta', ['beta 1']],
  ])
})

test('a named format is not asked', async () => {
  const sets = [{ name: 'x', files: [fileOf('gamma')] }]
  assert.deepEqual(shown(await detectFormats(sets, formats, 'beta')), [['beta', ['gamma']]])
})

const TELEGRAM = '<!DOCTYPE html>\n<html><head><title>Exported Data</title></head>'

test('a file that no format reads has advice, and an empty one is called empty', async () => {
  const tar = Buffer.alloc(512)
  tar.write('ustar', 257)
  for (const [file, advice] of [
    [fileOf('export/inner.zip', 'PK\x03\x04'), /It is a zip archive: save it as a file of its own/],
    [fileOf('stdin', 'PK\x03\x04'), /of stdin is not recognised. It is a zip archive/],
    [fileOf('a.numbers', 'PK\x03\x04'), /It is a spreadsheet: save it as .xlsx/],
    [fileOf('a.tgz', Buffer.from([0x1f, 0x8b, 8])), /It is a tar archive: unpack it/],
    [fileOf('a.tar', tar), /It is a tar archive/],
    [
      fileOf('a', Buffer.from([0x1f, 0x8b, 8])),
      /It is compressed: give it a name that ends in .gz/,
    ],
    [fileOf('a.mbox.bz2', 'BZh91AY'), /It is compressed by bzip2: run bunzip2/],
    [
      fileOf('Posts.7z', Buffer.from('7z\xBC\xAF', 'latin1')),
      /It is compressed by 7-Zip: unpack it/,
    ],
    [fileOf('a.msg', '\xD0\xCF'), /It is a mail of Outlook: .* msgconvert/],
    [fileOf('a.PST', '!BDN'), /It is a mailbox of Outlook: .* readpst/],
    [fileOf('a.olm', 'PK\x03\x04'), /It is a mailbox of Outlook for Mac/],
    [fileOf('a.json', ''), /It is empty/],
    [fileOf('messages.html', TELEGRAM), /HTML export of Telegram: .* "Machine-readable JSON"/],
    [
      fileOf('a.html', '<!DOCTYPE html>\n<html><style>.chatlog__x {}'),
      /HTML export of Discord: .* --format Json/,
    ],
    [fileOf('a.html', '<html><p>a'), /It is a web page/],
    [{ ...fileOf('a.json', ''), isEmpty: true }, /x is empty/],
  ] as const)
    await assert.rejects(
      detectFormats([{ name: 'x', files: [file], isList: true }], formats, undefined),
      advice,
    )
})

test('what is not recognised is named, with the formats that were tried and how to name one', async () => {
  for (const [files, named, message] of [
    [
      [fileOf('gamma')],
      undefined,
      /The format of gamma is not recognised. .* alpha, beta, alp. .*--format/,
    ],
    [
      ['gamma', 'eta'].map((name) => fileOf(name)),
      undefined,
      /The format of gamma and of 1 other file is not recognised/,
    ],
    [[fileOf('alpha')], 'delta', /--format must be one of alpha, beta, alp/],
  ] as const) {
    const detecting = detectFormats(
      [{ name: 'x', files: [...files], isList: true }],
      formats,
      named,
    )
    await assert.rejects(
      detecting,
      (error) => error instanceof UserError && message.test(error.message),
    )
  }
})

test('files that no format recognises are named, if they may have messages, and the others are read', async () => {
  const files = [
    'alpha',
    'notes.txt',
    'a.PNG',
    'b/Inbox.msf',
    'dovecot-uidlist',
    'more.zip',
    'x/README',
  ].map((path) => fileOf(path))
  const empty = { ...fileOf('Inbox'), isEmpty: true }
  const { read, unread, notes } = await detectFormats(
    [{ name: 'x', files: [...files, empty] }],
    formats,
  )
  assert.equal(read.length, 1)
  assert.deepEqual(
    unread.map(({ name }) => name),
    ['x/notes.txt', 'x/more.zip'],
  )
  assert.deepEqual(
    notes.map(({ place }) => place.path),
    ['a.PNG', 'b/Inbox.msf', 'dovecot-uidlist', 'x/README', 'Inbox'],
  )
})

test('a damaged file of a folder is rejected, and one that the user named ends the import', async () => {
  const damaged: InputFile = {
    path: 'beta 1',
    open: () =>
      new Readable({
        read() {
          this.destroy(new UnreadableFile('beta 1', 'it is damaged.', undefined))
        },
      }),
  }
  const { read, notes } = await detectFormats(
    [{ name: 'x', files: [damaged, fileOf('alpha')] }],
    formats,
  )
  assert.equal(read.length, 1)
  assert.deepEqual(notes[0]?.reason, "The file can't be read: it is damaged.")
  const exported = [fileOf('alpha'), { ...damaged, path: 'owned' }]
  const owning: Format = { ...formatOf('alpha'), owns: (_, own) => () => own.size > 0 }
  const owned = await detectFormats([{ name: 'x', files: exported }], [owning])
  assert.deepEqual(
    owned.read[0]?.files.map(({ path }) => path),
    ['alpha'],
  )
  await assert.rejects(
    detectFormats([{ name: 'x', files: [damaged, damaged] }], formats),
    /beta 1: The file can't be read: it is/,
  )
  await assert.rejects(
    detectFormats([{ name: 'x', files: ['a.png', 'b.png'].map((path) => fileOf(path)) }], formats),
    /No file of the input/,
  )
  const named = [
    { name: 'x', files: [{ ...damaged, isNamed: true }, fileOf('alpha')], isList: true as const },
  ]
  await assert.rejects(detectFormats(named, formats), /beta 1 cannot be read: it is damaged/)
})

test('files belong to an export by its names, whatever other format recognises them', async () => {
  const owner: Format = {
    ...formatOf('beta'),
    owns: (_, own) => (path) => own.has(path.replace(/ upload$/, '')),
  }
  const files = ['alpha 1', 'beta 1', 'beta 1 upload', 'beta 2 upload'].map((path) =>
    fileOf(path, path.replace(/^beta (.*) upload/, 'alpha $1')),
  )
  const found = await detectFormats([{ name: 'x', files }], [formatOf('alpha'), owner])
  assert.deepEqual(shown(found), [
    ['alpha', ['alpha 1', 'beta 2 upload']],
    ['beta', ['beta 1', 'beta 1 upload']],
  ])
})

test('the formats of a folder with several exports are told apart', async () => {
  const paths: [path: string, text: string, format: string | undefined][] = [
    ['slack/users.json', '[]', 'slack'],
    ['slack/channels.json', '[]', 'slack'],
    ['slack/canvases.json', '[]', 'slack'],
    ['slack/tickets.json', '[]', undefined],
    ['slack/notes/users.json', '[]', undefined],
    ['slack/notes/team.json', '[]', undefined],
    ['slack/general/2024-05-01.json', '[]', 'slack'],
    ['slack/general/attachments/F1-rows.csv', 'a,b', 'slack'],
    ['slack/general/canvas_in_the_conversation.json', '[]', 'slack'],
    ['slack/general/tickets.csv', 'a,b', undefined],
    ['slack/__uploads/F1/rows.csv', 'a,b', 'slack'],
    ['slack/mails/1.eml', 'From: a@b\nSubject: c\n\nd', 'mail'],
    ['chat.json', '{"guild":{},', 'discord'],
    ['chat.json_Files/rows.csv', 'a,b', 'discord'],
    [
      'telegram/result.json',
      '{"name":"a","type":"personal_chat","id":1,"messages":[]}',
      'telegram',
    ],
    ['telegram/files/rows.csv', 'a,b', 'telegram'],
    ['telegram/messages.html', TELEGRAM, 'telegram'],
    ['telegram/rows.csv', 'service,externalId,text\n', 'csv'],
    ['telegram/playlists.csv', 'a,b\n1,2\n', undefined],
    ['whatsapp/_chat.txt', '[31/5/2024, 09:30] Ada: Hi\n', 'whatsapp'],
    ['whatsapp/rows.csv', 'a,b\n1,2\n', undefined],
    ['whatsapp/00000012-rows.csv', 'a,b\n1,2\n', 'whatsapp'],
    ['zendesk/tickets.json', '[{"subject":"a","requester_id":1}]', 'zendesk'],
    ['zendesk/users.json', '[{"name":"a","role":"agent"}]', 'zendesk'],
    ['zendesk/chats.json', '[{"name":"a"}]', undefined],
    ['x/data/tweets.js', 'window.YTD.tweets.part0 = []', 'x'],
    ['x/data/like.js', 'window.YTD.like.part0 = []', 'x'],
    ['x/Your archive.html', '<html>', 'x'],
    ['x/data/rows.csv', 'a,b\n1,2\n', undefined],
    ['x/data/tweets_media/rows.csv', 'a,b\n1,2\n', undefined],
    [
      'facebook/messages/inbox/ada_7/message_1.json',
      '{"participants":[{"name":"A"}],"messages":[]}',
      'facebook',
    ],
    ['facebook/messages/inbox/ada_7/notes.json', '{"a":[]}', undefined],
    ['facebook/messages/notes.json', '{"a":[]}', undefined],
    ['facebook/messages/secret_groups.json', '{}', 'facebook'],
    ['facebook/friends/friends.json', '{}', 'facebook'],
    ['facebook/more.json', '{"friends_v2":[]}', 'facebook'],
    ['facebook/notes.json', '{"a":[]}', undefined],
    ['Maildir/cur/1', 'From: a@b\nSubject: c\n\nd', 'mail'],
    ['Maildir/tmp/2', 'half a mail', 'mail'],
    ['tmp/2', 'half a mail', undefined],
  ]
  const files = paths.map(([path, text]) => fileOf(path, text))
  const { read } = await detectFormats([{ name: 'x', files }], all)
  const formatOfPath = (path: string) =>
    read.find((group) => group.files.some((file) => file.path === path))?.format.name
  assert.deepEqual(
    paths.map(([path, text]) => [path, text, formatOfPath(path)]),
    paths,
  )
})

test('a table without the columns of a thread is named beside other files, and alone its format says what it lacks', async () => {
  const good = fileOf('good.csv', 'service,externalId,text\ncustom,1,a\n')
  const dates = fileOf('dates.csv', 'service,externalId,text,createdAt\ncustom,1,a,1/2/2024\n')
  const contacts = fileOf('contacts.csv', 'Name;Mail\nAda;a@b\n')
  const latin = fileOf('latin.csv', Buffer.from('Name;Stra\xDFe\n', 'latin1'))
  const detect = (files: InputFile[], map: Record<string, string> = {}) =>
    detectFormats([{ name: 'x', files }], all, undefined, {
      map: new Map(Object.entries(map)),
      set: new Map(),
    })
  const found = await detect([good, contacts, latin, dates])
  assert.deepEqual(shown(found), [['csv', ['good.csv']]])
  assert.deepEqual(
    found.unread.map(({ name }) => name),
    ['x/contacts.csv', 'x/latin.csv', 'x/dates.csv'],
  )
  const advice = found.unread.map((file) => file.advice).join('\n')
  assert.match(
    advice,
    /contacts.csv has no column service, .*--map.*\n.*--encoding.*\n.*needs --date-format/,
  )
  assert.deepEqual(shown(await detect([contacts])), [['csv', ['contacts.csv']]])
  await assert.rejects(detect([contacts, latin]), /contacts.csv has no column service/)
  await assert.rejects(
    detect([good, contacts], { colour: 'Mail' }),
    /--map names the unknown field colour/,
  )
})
