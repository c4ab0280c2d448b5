// Tests of Discord's data package, on what Ada wrote to the server of a small bakery.
import { expect, test } from 'vitest'
import { filesByFormat, inputFile, readAll } from '../read-all.test-support.ts'
import { createRejectedFormat } from '../sluice/rejected-format.ts'
import { discordFormat } from './discord.ts'

const WARNING = /^Discord's data package has only the messages of its own account/
const HEADER = 'ID,Timestamp,Contents,Attachments'
/**
 * A package of an account whose language is German. JavaScript would round both ids to one number.
 */
const GERMAN = {
  'Konto/user.json': { id: '1', username: 'ada' },
  'Konto/avatar.png': 'PNG',
  'Aktivität/analytics/events-2024-00000-of-00001.json':
    '{"event_type":"login"}\n{"event_type":"logout"}\n',
  'Nachrichten/index.json': { 77: 'Direktnachricht mit bo#0', 88: 'ovens in Bakery', 99: null },
  'Nachrichten/c77/channel.json': { id: '77', type: 'DM', recipients: ['1', '2'] },
  'Nachrichten/c77/messages.json':
    '[{"ID": 469641859543728149, "Timestamp": "2024-05-25 09:30:00", "Contents": "Is it cold?", "Attachments": ""},\n' +
    '{"ID": 469641859543728150, "Timestamp": "2024-05-25 09:31:00", "Contents": "", "Attachments": "https://a.example/1/a.png?ex=1 https://a.example/2/b.png"}]',
  'Nachrichten/c88/channel.json': {
    id: '88',
    type: 'PUBLIC_THREAD',
    name: 'ovens',
    guild: { id: '9', name: 'B' },
  },
  'Nachrichten/c88/messages.json': [
    { ID: '5', Timestamp: '2024-05-25 09:32:00', Contents: 'Warm "ID": 12', Attachments: '' },
  ],
  'Nachrichten/c99/channel.json': { id: '99', type: 'GUILD_TEXT' },
  'Nachrichten/c99/messages.json': [],
  'Server/12345678901234567/guild.json': { id: '12345678901234567', name: 'B' },
}
const filesOf = (all: Readonly<Record<string, unknown>>) =>
  Object.entries(all).map(([path, content]) => inputFile(path, content))

test('a package is read whole, in whatever language: own messages, with exact ids, and by their channels', async () => {
  const inZip = Object.entries(GERMAN).map(([path, content]) =>
    inputFile(`package/${path}`, content),
  )
  for (const files of [filesOf(GERMAN), inZip]) {
    const { discord = [], ...others } = await filesByFormat(files)
    expect(others).toEqual({})
    const read = files.filter(({ path }) => discord.includes(path))
    const { pieces, notes, rejected } = await readAll(discordFormat, read)
    expect([read.length, rejected]).toEqual([files.length - 1, []])
    expect(
      pieces.map(({ externalId, fields, quotes }) => [
        externalId,
        fields.channelName,
        fields.url,
        ...quotes,
      ]),
    ).toEqual([
      [
        '77/2024-05-25',
        'Direktnachricht mit bo',
        'https://discord.com/channels/@me/77',
        {
          externalId: '469641859543728149',
          text: 'Is it cold?',
          speaker: 'ada',
          createdAt: '2024-05-25T09:30:00.000Z',
        },
      ],
      [
        '77/2024-05-25',
        'Direktnachricht mit bo',
        'https://discord.com/channels/@me/77',
        {
          externalId: '469641859543728150',
          text: '',
          speaker: 'ada',
          createdAt: '2024-05-25T09:31:00.000Z',
          attachments: ['a.png', 'b.png'],
        },
      ],
      [
        '88',
        'ovens',
        'https://discord.com/channels/9/88',
        {
          externalId: '5',
          text: 'Warm "ID": 12',
          speaker: 'ada',
          createdAt: '2024-05-25T09:32:00.000Z',
        },
      ],
    ])
    expect(notes.filter(({ kind }) => kind === 'warning')[0]?.reason).toMatch(WARNING)
  }
})

test('an old package has CSV, and a folder of one channel names it', async () => {
  const rows = [
    HEADER,
    '6,2020-05-25 09:30:00.123000+00:00,"Cold\noven",',
    '7,soon,Warm,',
    '8,"x"y,z',
  ]
  const files = filesOf({
    'messages.csv': rows.join('\n'),
    'channel.json': { id: '77', type: 0, name: 'ovens' },
  })
  expect(await filesByFormat(files)).toEqual({ discord: ['messages.csv', 'channel.json'] })
  const { pieces, rejected } = await readAll(discordFormat, files)
  expect(
    pieces.map(({ externalId, fields, quotes }) => [externalId, fields.url, quotes[0]?.text]),
  ).toEqual([['77/2020-05-25', undefined, 'Cold\noven']])
  const corrected = rejected.map(({ record, ...line }) => {
    const right =
      typeof record === 'string'
        ? `${HEADER}\n8,2020-05-25 09:33:00,z,`
        : { ...Object(record), timestamp: '2020-05-25' }
    return JSON.stringify({
      ...line,
      ...line.place,
      path: 'c77/messages.csv',
      format: 'discord',
      record: right,
    })
  })
  const again = await readAll(createRejectedFormat([discordFormat]), [
    inputFile('a.rejected.ndjson', corrected.join('\n')),
  ])
  expect(again.rejected).toEqual([])
  expect(again.pieces.map(({ externalId, quotes }) => [externalId, quotes[0]?.text])).toEqual([
    ['77/2020-05-25', 'Warm'],
    ['77/2020-05-25', 'z'],
  ])
})

test('a file alone that names no channel is refused with what to import instead', async () => {
  const file = inputFile('messages.json', [
    { ID: 1, Timestamp: '2024-05-25 09:30:00', Contents: 'a', Attachments: '' },
  ])
  const { rejected } = await readAll(discordFormat, [file])
  expect(rejected.map(({ reason }) => reason)).toEqual([
    expect.stringMatching(/import the package whole/),
  ])
})
