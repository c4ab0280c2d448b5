// Tests of the WhatsApp format, on the chats of a small bakery.
import { Readable } from 'node:stream'
import { expect, test } from 'vitest'
import { UnreadableFile } from '../format.ts'
import { filesByFormat, inputFile, readAll, recognises } from '../read-all.test-support.ts'
import { whatsappFormat } from './whatsapp.ts'

const iphone = (...lines: string[]) => inputFile('_chat.txt', lines.join('\r\n'))
const android = (...lines: string[]) => inputFile('WhatsApp Chat with Bakers.txt', lines.join('\n'))
const read = (file: ReturnType<typeof iphone>, timezone = 'UTC') =>
  readAll(whatsappFormat, [file], { timezone })

const ENCRYPTED =
  '[01/05/2024, 09:29:00] Bakers: \u200EMessages and calls are end-to-end encrypted.'

test('an iPhone names the chat in its first line, and marks its own words', async () => {
  const file = iphone(
    ENCRYPTED,
    '[01/05/2024, 09:30:15] Ada: Cold oven',
    'since six: really',
    '\u200E[01/05/2024, 09:31:00] ~\u00A0Bo: \u200E<attached: 00000012-PHOTO.jpg>',
    '[01/05/2024, 09:32:00] Bo: \u200Eimage omitted',
    '[01/05/2024, 09:33:00] Ada: \u200EThis message was deleted.',
    '[13/05/2024, 09:34:00] Ada: Warm oven \u200E<This message was edited>',
  )
  expect(await recognises(whatsappFormat, file)).toBe(true)
  const found = await read(file, 'Europe/Berlin')
  expect(found.pieces[0]).toMatchObject({
    service: 'custom',
    externalId: 'whatsapp/Bakers/2024-05-01',
    fields: {
      title: 'Bakers, 2024-05-01',
      channelName: 'Bakers',
      createdAt: '2024-05-01T00:00:00.000Z',
    },
  })
  expect(found.pieces.map(({ quotes }) => quotes[0])).toEqual([
    { text: 'Cold oven\nsince six: really', speaker: 'Ada', createdAt: '2024-05-01T07:30:15.000Z' },
    {
      text: '',
      speaker: 'Bo',
      createdAt: '2024-05-01T07:31:00.000Z',
      attachments: ['00000012-PHOTO.jpg'],
    },
    { text: 'Warm oven', speaker: 'Ada', createdAt: '2024-05-13T07:34:00.000Z' },
  ])
  expect(found.noted).toEqual({
    'skipped: notices by WhatsApp, media that were not exported, and messages that were deleted': 3,
  })
})

test('documents that an iPhone left out, polls and places are of a person', async () => {
  const { pieces, noted } = await read(
    iphone(
      ENCRYPTED,
      '\u200E[13/05/2024, 09:30:00] Ada: menu.pdf • \u200E4 pages \u200Edocument omitted',
      '\u200E[13/05/2024, 09:31:00] Ada: prices.docx \u200Edocument omitted',
      '[13/05/2024, 09:32:00] Bo: \u200EPOLL:',
      'Rye?',
      '\u200EOPTION: Yes (2 votes)',
      '\u200EOPTION: No (0 votes)',
      '[13/05/2024, 09:33:00] Bo: \u200ELocation: https://maps.google.com/?q=48.2,14.1',
      '[13/05/2024, 09:34:00] Bo: \u200E~ Bo pinned a message',
    ),
  )
  expect(pieces.map(({ quotes: [quote] }) => [quote?.text, quote?.attachments])).toEqual([
    ['', ['menu.pdf']],
    ['', ['prices.docx']],
    ['POLL:\nRye?\nOPTION: Yes (2 votes)\nOPTION: No (0 votes)', undefined],
    ['Location: https://maps.google.com/?q=48.2,14.1', undefined],
  ])
  expect(noted).toEqual({
    'skipped: notices by WhatsApp, media that were not exported, and messages that were deleted': 2,
  })
})

test('Android has no brackets, and names the chat in the file', async () => {
  const found = await read(
    android(
      '5/1/24, 9:29 AM - Messages and calls are end-to-end encrypted.',
      '5/1/24, 12:30\u202FAM - Ada: IMG-7.jpg (file attached)',
      'Look: <b>',
      '5/1/24, 12:30 PM - Ada: <Media omitted>',
      '5/1/24, 9:30 PM - Ada: This message was deleted',
      '5/1/24, 9:30 PM - Ada: ok',
      '5/1/24, 9:30 PM - Ada: ok',
    ),
  )
  expect(
    found.pieces.map(({ externalId, quotes: [quote] }) => [
      externalId,
      quote?.text,
      quote?.createdAt,
    ]),
  ).toEqual([
    ['whatsapp/Bakers/2024-05-01', 'Look: <b>', '2024-05-01T00:30:00.000Z'],
    ['whatsapp/Bakers/2024-05-01', 'ok', '2024-05-01T21:30:00.000Z'],
    ['whatsapp/Bakers/2024-05-01', 'ok', '2024-05-01T21:30:00.000Z'],
  ])
  expect(found.pieces[0]?.quotes[0]?.attachments).toEqual(['IMG-7.jpg'])
  expect(found.noted).toEqual({
    'skipped: notices by WhatsApp, such as of who joined a chat': 1,
    'skipped: media that were not exported': 1,
    'skipped: notices of WhatsApp, told by wording': 1,
    'warning: dates such as 5/1/2024 that were read with the month first': 1,
  })
})

test('America writes no leading zeros: with them, the day comes first, and the summary warns', async () => {
  const { pieces, noted } = await read(
    android('02/11/2020, 9:47 pm - Ada: a', '12/11/2020, 9:48 pm - Ada: b'),
  )
  expect(pieces.map(({ quotes: [quote] }) => quote?.createdAt)).toEqual([
    '2020-11-02T21:47:00.000Z',
    '2020-11-12T21:48:00.000Z',
  ])
  expect(noted).toEqual({
    'warning: dates such as 5/1/2024 that were read with the day first': 1,
  })
})

test('files that people sent are counted, and other texts are named as unread', async () => {
  const files = [
    inputFile('a.txt', 'Hello'),
    inputFile('20240501-orders.csv', 'a,b'),
    inputFile('DOC-20240501-WA0001.csv', 'a,b'),
    inputFile('00000012-Orders.csv', 'a,b'),
    inputFile('IMG-20240501-WA0002.jpg', 'x'),
    inputFile('Bob.vcf', 'BEGIN:VCARD'),
    android('1/5/2024, 09:30 - Ada: a'),
  ]
  const sent = files.slice(2)
  expect(await filesByFormat(files)).toEqual({
    whatsapp: sent.map(({ path }) => path),
    unread: ['x/a.txt', 'x/20240501-orders.csv'],
  })
  const found = await readAll(whatsappFormat, sent, { timezone: 'UTC' })
  expect(found.pieces).toHaveLength(1)
  expect(found.noted).toMatchObject({
    'skipped: files without messages: file attachments': 3,
    'skipped: files without messages: media': 1,
  })
})

test.each([
  'WhatsApp-Chat mit Ada',
  'Chat de WhatsApp con Ada',
  'Discussion WhatsApp avec Ada',
  'Chat WhatsApp con Ada',
])('the name of the chat stands in the file %s.txt', async (name) => {
  const { pieces } = await read(inputFile(`${name}.txt`, '13/5/2024, 09:30 - Ada: a'))
  expect(pieces[0]?.fields.channelName).toBe('Ada')
})

test.each([
  ['01.05.24, 09:30', '2024-05-01T09:30:00.000Z', 0],
  ['01/05/24, 09:30', '2024-05-01T09:30:00.000Z', 1],
  ['13/5/2024, 9:30 pm', '2024-05-13T21:30:00.000Z', 0],
  ['5/13/2024, 9.30', '2024-05-13T09:30:00.000Z', 0],
  ['20/6/2017 8:28\u00A0p.\u00A0m.', '2017-06-20T20:28:00.000Z', 0],
  ['31/12/2019, 2:14:40 a.m.', '2019-12-31T02:14:40.000Z', 0],
  ['2026/7/9 02:28:09', '2026-07-09T02:28:09.000Z', 0],
  ['2024/1/5 下午3:34', '2024-01-05T15:34:00.000Z', 0],
  ['2024-05-01, 09:30', '2024-05-01T09:30:00.000Z', 0],
  ['2024/05/13 09:30', '2024-05-13T09:30:00.000Z', 0],
])('the date %s is read as %s', async (date, createdAt, warnings) => {
  const found = await read(android(`${date} - Ada: Hi`))
  expect(found.pieces[0]?.quotes[0]?.createdAt).toBe(createdAt)
  expect(found.notes).toHaveLength(warnings)
})

test('a time in a text stays as it is, and a damaged file harms no other', async () => {
  const damaged = {
    path: 'b.txt',
    open: () => Readable.from([Buffer.from('1/5/2024, 09:30 - Ada: a\n')]).map(() => failToRead()),
  }
  const failToRead = () => {
    throw new UnreadableFile('b.txt', 'it is damaged.', undefined)
  }
  const found = await readAll(whatsappFormat, [damaged, android('2024/1/5 9:30 - Ada: 下午3:34')], {
    timezone: 'UTC',
  })
  expect(found.pieces.map(({ quotes }) => quotes[0]?.text)).toEqual(['下午3:34'])
  expect(found.rejected[0]?.reason).toBe("The file can't be read: it is damaged.")
})

test('dates ascend, which tells day and month apart', async () => {
  const found = await read(
    android('1/5/2024, 09:30 - Ada: a', '2/5/2024, 09:30 - Ada: b', '1/6/2024, 09:30 - Ada: c'),
  )
  expect(found.pieces.map(({ quotes }) => quotes[0]?.createdAt?.slice(0, 10))).toEqual([
    '2024-05-01',
    '2024-05-02',
    '2024-06-01',
  ])
  expect(found.notes).toEqual([])
})

test('a time zone is needed, and a line before the first date is rejected', async () => {
  await expect(readAll(whatsappFormat, [iphone(ENCRYPTED)])).rejects.toThrow(
    'pass the time zone of the phone',
  )
  const { rejected } = await read(android('Hello', '1/5/2024, 09:30 - Ada: a'))
  expect(rejected.map(({ reason }) => reason)).toEqual(['a line without a valid date'])
})

test.each([
  ['[1.5.2024 klo 9.30.15] Ada: Hi', '[13.5.2024 klo 21.30.15] Bo: Hi'],
  ['1.5.2024 klo 9.30 - Ada: Hi', '13.5.2024 klo 21.30 - Bo: Hi'],
  ['2024. 05. 01. 9:30 - Ada: Hi', '2024. 05. 13. 21:30 - Bo: Hi'],
  ['[2024. 5. 1. 오전 9:30:15] Ada: Hi', '[2024. 5. 13. 오후 9:30:15] Bo: Hi'],
  ['01.05.2024. 09:30 - Ada: Hi', '13.05.2024. 21:30 - Bo: Hi'],
  ['1.05.2024 г., 9:30 - Ada: Hi', '13.05.2024 г., 21:30 - Bo: Hi'],
  ['01/05/2024 à 09:30 - Ada: Hi', '13/05/2024 à 21:30 - Bo: Hi'],
  ['1/5/24, 9:30 π.μ. - Ada: Hi', '13/5/24, 9:30 μ.μ. - Bo: Hi'],
  ['1.05.24 г., 9:30 ч. - Ada: Hi', '13.05.24 г., 21:30 ч. - Bo: Hi'],
  ['[09:30:15, 1/5/24] Ada: Hi', '\u200E[21:30:15, 13/5/24] Bo: Hi'],
  ['[1/5/2567 BE, 09:30:15] Ada: Hi', '[13/5/2567 BE, 21:30:15] Bo: Hi'],
  ['‏١‏/٥‏/٢٠٢٤، ٩:٣٠ ص - Ada: Hi', '‏١٣‏/٥‏/٢٠٢٤، ٩:٣٠ م - Bo: Hi'],
  [
    '\u200F[١\u200F/٥\u200F/٢٠٢٤، ٩:٣٠:١٥ ص] Ada: Hi',
    '\u200F[١٣\u200F/٥\u200F/٢٠٢٤، ٩:٣٠:١٥ م] Bo: Hi',
  ],
  ['۱۴۰۳/۲/۱۲،‏ ۹:۳۰ - Ada: Hi', '۱۴۰۳/۲/۲۴،‏ ۲۱:۳۰ - Bo: Hi'],
])('reads dates such as %s', async (first, second) => {
  const file = android(first, second)
  expect(await recognises(whatsappFormat, file)).toBe(true)
  const { pieces } = await read(file)
  expect(
    pieces.map(({ quotes: [quote] }) => [quote?.speaker, quote?.createdAt?.slice(0, 16)]),
  ).toEqual([
    ['Ada', '2024-05-01T09:30'],
    ['Bo', '2024-05-13T21:30'],
  ])
})

test.each([
  ['report.pdf (file attached)', { text: '', attachments: ['report.pdf'] }],
  ['My report.pdf (Datei angehängt)\nRead it', { text: 'Read it', attachments: ['My report.pdf'] }],
  [
    'IMG-20240501-WA0001.jpg (soubor byl přiložen)',
    { text: '', attachments: ['IMG-20240501-WA0001.jpg'] },
  ],
  ['a.example (see the second page)', { text: 'a.example (see the second page)' }],
  [
    '\u200ERye.pdf • \u200E2 pages \u200E<attached: 07-Rye.pdf>',
    { text: 'Rye.pdf • 2 pages', attachments: ['07-Rye.pdf'] },
  ],
  ['see <note: a.txt>', { text: 'see <note: a.txt>' }],
])('of %j, the file and the words are told apart', async (text, quote) => {
  const { pieces } = await read(
    android('31/05/2024, 09:30 - Ada: Hi', `31/05/2024, 09:31 - Ada: ${text}`),
  )
  expect(pieces[1]?.quotes[0]).toEqual({
    speaker: 'Ada',
    createdAt: '2024-05-31T09:31:00.000Z',
    ...quote,
  })
})

test('a chat without its first line has the name of its folder, or a warning', async () => {
  const text = '[31/05/2024, 09:30:15] Ada: Cold oven'
  const inFolder = await read(inputFile('WhatsApp Chat - Bakers/_chat.txt', text))
  expect([inFolder.pieces[0]?.fields.channelName, inFolder.notes]).toEqual(['Bakers', []])
  const alone = await read(inputFile('_chat.txt', text))
  expect(alone.pieces[0]?.fields.channelName).toBe('_chat')
  expect(alone.notes).toMatchObject([
    { kind: 'warning', reason: expect.stringMatching(/^chats without a name/) },
  ])
})

test('a person is one person, however the phone writes the name or number', async () => {
  const { pieces } = await read(
    iphone(
      ENCRYPTED,
      '[13/05/2024, 09:30:00] +49 170 0000001: a',
      '[13/05/2024, 09:31:00] \u202A+49\u00A0170\u00A00000001\u202C: b',
      '[13/05/2024, 09:32:00] ~\u202F\u2068+49 170 0000001\u2069: c',
      '[13/05/2024, 09:33:00] ~ Bo 👩\u200D🍳: d',
    ),
  )
  const number = '+49 170 0000001'
  expect(pieces.map(({ quotes: [quote] }) => quote?.speaker)).toEqual([
    number,
    number,
    number,
    'Bo 👩\u200D🍳',
  ])
})

test('only CR LF ends a message of an iPhone, so pasted lines of a chat stay in its text', async () => {
  const pasted = 'Look:\n[01/05/2024, 08:00:00] Cy: No\n01/05/2024, 08:01 - Cy: Nor I'
  const messages = [
    `[13/05/2024, 09:30:00] Ada: ${pasted}`,
    '[13/05/2024, 09:31:00] Bo: b',
    '[13/05/2024, 09:32:00] Ada: c',
  ]
  // Exports of long chats lack the first message.
  for (const lines of [[ENCRYPTED, ...messages], messages]) {
    const { pieces } = await read(iphone(...lines))
    expect(pieces.map(({ quotes: [quote] }) => [quote?.speaker, quote?.text])).toEqual([
      ['Ada', pasted],
      ['Bo', 'b'],
      ['Ada', 'c'],
    ])
  }
})

test('a line that may be a message in a form that is not known is counted', async () => {
  const { pieces, noted } = await read(
    iphone(ENCRYPTED, '[13/05/2024, 09:30:00] Ada: a', '[13/05/2024, 9:31:00 zzz] Bo: b'),
  )
  expect(pieces).toHaveLength(1)
  expect(Object.keys(noted)).toContainEqual(expect.stringMatching(/^doubtful: messages with lines/))
})

test('chats that were joined start over at their byte order marks', async () => {
  const first = '\uFEFF[13/05/2024, 09:30:00] Ada: a\r\n'
  const second = '\uFEFF13/05/2024, 09:31 - Bo: b\n13/05/2024, 09:32 - Ada: c\n'
  const third = '[\uFEFF13/05/2024, 09:33:00] Bo: d\r\n'
  const { pieces } = await read(android(first + second + third))
  expect(pieces.map(({ quotes: [quote] }) => quote?.text)).toEqual(['a', 'b', 'c', 'd'])
})

test.each([
  [
    'an iPhone and of Android',
    [
      '[13/05/2024, 09:30:00] Ada: a\r\n',
      '13/05/2024, 09:31 - Bo: b\n13/05/2024, 09:32 - Ada: c\n',
    ],
  ],
  [
    'Android and of an iPhone',
    [
      '13/05/2024, 09:30 - Ada: a\n13/05/2024, 09:31 - Bo: b\n',
      '[13/05/2024, 09:32:00] Ada: c\r\n',
    ],
  ],
])(
  'chats of %s that were joined without marks start over at the form of the other phone',
  async (_, chats) => {
    const iphones = [
      '33:00] Bo: d\r\n',
      '34:00] Ada: e\n[01/05/2024, 08:00:00] Cy: No\r\n',
      '35:00] Bo: f\r\n',
    ]
    const { pieces } = await read(
      android([...chats, ...iphones.map((one) => `[13/05/2024, 09:${one}`)].join('')),
    )
    expect(pieces.map(({ quotes: [quote] }) => quote?.text)).toEqual([
      ...['a', 'b', 'c', 'd', 'e\n[01/05/2024, 08:00:00] Cy: No', 'f'],
    ])
  },
)

test('notices of Android are told by wording, also behind a chat of an iPhone', async () => {
  const notice = '13/05/2024, 09:32 - Bo: This message was deleted\n'
  const { pieces, noted } = await read(
    android(`${ENCRYPTED}\r\n[13/05/2024, 09:30:00] Ada: a\r\n${notice}`),
  )
  expect([pieces.length, noted['skipped: notices of WhatsApp, told by wording']]).toEqual([1, 1])
})

test('an old iPhone wrote a colon behind the date, which is part of a text in other chats', async () => {
  const old = await read(
    android('7/21/16, 4:56:55 PM: Ada: Open: yes', 'until six', '7/22/16, 8:05:00 AM: Ada left'),
  )
  expect(old.pieces.map(({ quotes: [quote] }) => [quote?.speaker, quote?.text])).toEqual([
    ['Ada', 'Open: yes\nuntil six'],
  ])
  const joined = await read(
    android('13/05/2024, 09:30 - Ada: a', '\uFEFF21/07/2024, 16:56:55: Bo: b'),
  )
  expect(joined.pieces.map(({ quotes: [quote] }) => quote?.text)).toEqual(['a', 'b'])
  const text = 'Plan:\n14/05/2024, 10:30: Oven: clean'
  const chat = await read(android(`13/05/2024, 09:30 - Ada: ${text}`))
  expect(chat.pieces.map(({ quotes: [quote] }) => quote?.text)).toEqual([text])
  expect(
    await recognises(whatsappFormat, inputFile('server.txt', '2024-05-13 09:30:00: ERROR: disk')),
  ).toBe(false)
})

test('of dates with two digits for the year, the order follows from the years of WhatsApp and from their ascent', async () => {
  const days = (...dates: string[]) =>
    read(android(...dates.map((date) => `${date} 9:30 - Ada: Hi`)))
  const found = async (...dates: string[]) =>
    (await days(...dates)).pieces.map(({ quotes: [quote] }) => quote?.createdAt?.slice(0, 10))
  expect(await found('24/5/25', '24/6/3')).toEqual(['2024-05-25', '2024-06-03'])
  expect(await found('25/5/67', '3/6/67')).toEqual(['2024-05-25', '2024-06-03'])
  expect(await found('25/5/24', '3/6/24')).toEqual(['2024-05-25', '2024-06-03'])
  expect(await found('24/8/21 PM', '22/11/15 PM')).toEqual(['2024-08-21', '2022-11-15'])
})

test.each([
  'Ada created group "Loaf: Rye"',
  'Ada created group Loaf: Rye',
  'Bo hat den Gruppennamen von „Loaf: Rye“ zu „Brot“ geändert.',
  'Ada a donné au groupe le nom « Loaf: Rye »',
  '管理员将群名改为“Loaf: Rye”',
  'Missed voice call at 9:30',
  'Ada: Esta mensagem foi apagada',
  'Bo: Tato zpráva byla smazána.',
  'Bo: Ez az üzenet törölve lett',
  'Bo: 이 메시지는 삭제되었습니다.',
  'Bo: Cevapsız sesli arama',
])('of Android, "%s" is a notice', async (line) => {
  const { pieces, noted } = await read(
    android('13/5/2024, 09:29 - Ada: Hi', `13/5/2024, 09:30 - ${line}`),
  )
  expect(pieces).toHaveLength(1)
  expect(Object.values(noted)).toEqual([1])
})

test.each([
  ['Ada "Rye" Loaf', 'Open: "yes"'],
  ['Tom 5"', 'not 6" but "Rye: dark"'],
  ['Bo', 'Ada created group "Loaf: Rye", did she?'],
  ['Bo', 'You deleted this message, why?'],
  ['Bo', 'see <draft: two>'],
])('%s, who says %j, is a person', async (speaker, text) => {
  const { pieces } = await read(android(`13/5/2024, 09:30 - ${speaker}: ${text}`))
  expect(pieces.map(({ quotes: [quote] }) => [quote?.speaker, quote?.text])).toEqual([
    [speaker, text],
  ])
})

test('the mark of an edited message is none of its words; on an iPhone, an unmarked sentence is of the person', async () => {
  const texts = [
    'At six <This message was edited>',
    'Um sechs <Diese Nachricht wurde bearbeitet.>',
    'It said: <edited>',
  ]
  const edited = await read(android(...texts.map((text) => `13/5/2024, 09:30 - Ada: ${text}`)))
  expect(edited.pieces.map(({ quotes: [quote] }) => quote?.text)).toEqual([
    'At six',
    'Um sechs',
    'It said: <edited>',
  ])
  const marked = await read(
    iphone(ENCRYPTED, '[13/05/2024, 09:30:00] Ada: This message was deleted.'),
  )
  expect(marked.pieces).toHaveLength(1)
})

test('a line above the bound of a record is cut, and counted', async () => {
  const { pieces, noted } = await read(
    android(
      '13/05/2024, 09:30 - Ada: Rye',
      'bread '.repeat(6_000_000),
      '13/05/2024, 09:31 - Bo: No',
    ),
  )
  expect(pieces.map(({ quotes }) => quotes[0]?.text.slice(0, 4))).toEqual(['Rye\n', 'No'])
  expect(noted).toEqual({ 'cut: lines of more than 33554432 bytes': 1 })
})

test('a name may contain a colon', async () => {
  const { pieces, noted } = await read(
    android(
      '13/05/2024, 09:30 - Bo:): Rye at 9:30: sold out',
      '13/05/2024, 09:31 - Ada changed the subject to "Shift 12:30: bakers"',
      '13/05/2024, 09:32 - Ada changed the time to 12:30',
      '13/05/2024, 09:33 - ::Cy::: Why?',
      '13/05/2024, 09:34 - Bo:):',
    ),
  )
  expect(pieces.map(({ quotes }) => [quotes[0]?.speaker, quotes[0]?.text])).toEqual([
    ['Bo:)', 'Rye at 9:30: sold out'],
    ['::Cy::', 'Why?'],
    ['Bo:)', ''],
  ])
  expect(noted).toEqual({
    'skipped: notices of WhatsApp, told by wording': 1,
    'skipped: notices by WhatsApp, such as of who joined a chat': 1,
  })
})

test.each([
  ['CR alone', '13/05/2024, 09:30 - Ada: a\r13/05/2024, 09:31 - Bo: b\r', ['a', 'b']],
  ['CR CR LF', '13/05/2024, 09:30 - Ada: a\r\r\n13/05/2024, 09:31 - Bo: b\r\r\n', ['a', 'b']],
  [
    'LF, although somebody pasted CR LF into the first message',
    '13/05/2024, 09:30 - Ada: a\r\nb\n13/05/2024, 09:31 - Bo: c\n13/05/2024, 09:32 - Cy: d\n',
    ['a\nb', 'c', 'd'],
  ],
  [
    'CR LF, although somebody pasted more lines of a chat than there are messages',
    '[13/05/2024, 09:30:00] Ada: a\n[01/05/2024, 08:00:00] Bo: b\n[01/05/2024, 08:01:00] Cy: c\r\n[13/05/2024, 09:31:00] Bo: d\r\n',
    ['a\n[01/05/2024, 08:00:00] Bo: b\n[01/05/2024, 08:01:00] Cy: c', 'd'],
  ],
  [
    'CR LF on Android, where the first message has two lines',
    '13/05/2024, 09:30 - Ada: a\nb\r\n13/05/2024, 09:31 - Bo: c\n01/05/2024, 08:00 - Cy: d\r\n',
    ['a\nb', 'c\n01/05/2024, 08:00 - Cy: d'],
  ],
])('lines may end with %s', async (_, text, texts) => {
  const { pieces } = await read(inputFile('WhatsApp Chat with Bakers.txt', text))
  expect(pieces.map(({ quotes: [quote] }) => quote?.text)).toEqual(texts)
})

test('marks around dates and names are of nobody', async () => {
  const { pieces, rejected } = await read(
    android(
      '',
      '\u202A[13/05/2024, 09:30:00]\u202C \u202AAda\u202C: a',
      '\u200B\u00A0[13/05/2024, 09:31:00] \u2060Ada\u200B: b',
      '\u2066[\u206613/05/2024\u2069, 09:32:00\u2069]\u2069 Ada: c',
    ),
  )
  expect(rejected).toEqual([])
  expect(pieces.map(({ quotes: [quote] }) => [quote?.speaker, quote?.text])).toEqual(
    ['a', 'b', 'c'].map((text) => ['Ada', text]),
  )
})

test.each(['༡༣/༥/༢༠༢༤ ༩:༣༠', '᱑᱓/᱕/᱒᱐᱒᱔ ᱙:᱓᱐', '𑄷𑄹/𑄻/𑄸𑄶𑄸𑄺 𑄿:𑄹𑄶'])(
  'digits of any script are read: %s',
  async (date) => {
    const { pieces } = await read(android(`${date} - Ada: Hi`))
    expect(pieces[0]?.quotes[0]?.createdAt).toBe('2024-05-13T09:30:00.000Z')
  },
)

test('a message from before WhatsApp is of another calendar, and rejected', async () => {
  const { pieces, rejected } = await read(
    android(
      '23/02/1946, 09:30 - Ada: a',
      '01/01/1970, 00:00 - Ada: b',
      '13/05/2024, 09:30 - Bo: c',
    ),
  )
  expect([pieces.length, rejected.length]).toEqual([1, 2])
})

test.each(['हा मेसेज हटवला गेला', 'ఈ సందేశం తొలగించబడింది.', 'இந்த செய்தி நீக்கப்பட்டது', 'Ujumbe huu umefutwa'])(
  '%s is of WhatsApp',
  async (text) => {
    const { pieces, noted } = await read(android(`13/05/2024, 09:30 - Ada: ${text}`))
    expect(pieces).toEqual([])
    expect(noted).toEqual({ 'skipped: notices of WhatsApp, told by wording': 1 })
  },
)
