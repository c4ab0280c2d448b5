// Tests of the Telegram format, on the chats of a small bakery.
import { describe, expect, test } from 'vitest'
import { filesByFormat, inputFile, readAll, recognises } from '../read-all.test-support.ts'
import { telegramFormat } from './telegram.ts'

const chat = { name: 'Ovens', type: 'private_supergroup', id: 77 }
const message = {
  id: 5,
  type: 'message',
  date: '2024-05-02T01:30:00',
  date_unixtime: '1714606200',
  from: 'Ada',
  from_id: 'user1',
  text: 'Cold oven',
}

test('recognises one chat and an account, and nothing else', async () => {
  const account = { about: 'Here is the data you requested.', chats: { list: [chat] } }
  expect(await recognises(telegramFormat, file([message]))).toBe(true)
  expect(await recognises(telegramFormat, inputFile('result.json', account))).toBe(true)
  expect(
    await recognises(telegramFormat, inputFile('a.json', { type: 'message', messages: [] })),
  ).toBe(false)
})

test('counts names of whom messages were forwarded from, and rows of buttons', async () => {
  const buttons = { inline_bot_buttons: [[{ type: 'url', text: 'Buy' }]] }
  const found = await find([
    { ...message, forwarded_from: 'Bo' },
    { ...message, ...buttons },
  ])
  expect(found.pieces).toHaveLength(2)
  expect(found.noted).toEqual({
    'skipped: names of whom messages were forwarded from': 1,
    'skipped: rows of buttons': 1,
  })
})

test.each([
  ['brackets in its name', { ...chat, name: '[EU] "Ovens" {night}' }],
  ['a file of its own before its name', { photo: { path: 'a.jpg' }, list: [], ...chat }],
  ['a type that is not known yet', { ...chat, type: 'private_forum' }],
])('recognises a chat with %s', async (_, one) => {
  expect(
    await recognises(telegramFormat, inputFile('a.json', { ...one, messages: [message] })),
  ).toBe(true)
})

test('recognises an account whose contacts are longer than what is looked at', async () => {
  const account = {
    about: 'x',
    contacts: { list: Array.from({ length: 9_000 }, () => 'a name') },
    chats: {},
  }
  expect(await recognises(telegramFormat, inputFile('result.json', account))).toBe(true)
})

test('a folder may have JSON files that people sent, which are counted', async () => {
  const files = [
    inputFile('files/data.json', [{ messages: [{ id: 1 }] }]),
    inputFile('files/a.pdf', 'x'),
  ]
  const export_ = [...files, inputFile('result.json', { ...chat, messages: [message] })]
  expect(await filesByFormat(export_)).toEqual({
    telegram: ['files/data.json', 'files/a.pdf', 'result.json'],
  })
  const found = await readAll(telegramFormat, export_)
  expect(found.pieces).toHaveLength(1)
  expect(found.noted).toEqual({
    'skipped: files without messages: file attachments': 1,
    'skipped: files without messages: documents': 1,
  })
  const renamed = [...files, inputFile('ovens.json', { ...chat, messages: [message] })]
  expect(await filesByFormat(renamed)).toEqual({
    telegram: ['files/data.json', 'files/a.pdf', 'ovens.json'],
  })
})

test('of two copies the edited one comes last, and messages of one second stay in the order of their ids', async () => {
  const edited = {
    ...message,
    text: 'Warm oven',
    edited: '2024-05-02T03:00:00',
    edited_unixtime: '1714611600',
  }
  const before = { ...message, id: -999_999_990, text: 'older than the supergroup' }
  const found = await find([edited, message, { ...message, id: 6, text: 'next' }, before])
  expect(found.quotes('channel77/2024-05-01').map(({ text }) => text)).toEqual([
    'older than the supergroup',
    'Cold oven',
    'Warm oven',
    'next',
  ])
})

describe('sources', () => {
  test('a UTC day of a chat is a source', async () => {
    const { pieces } = await find([message, { ...message, id: 6, date_unixtime: '1714608000' }])
    expect(pieces.map((piece) => piece.externalId)).toEqual([
      'channel77/2024-05-01',
      'channel77/2024-05-02',
    ])
    expect(pieces[0]?.fields).toEqual({
      title: 'Ovens, 2024-05-01',
      channelName: 'Ovens',
      channelId: 'channel77',
      createdAt: '2024-05-01T00:00:00.000Z',
    })
  })

  test('an account has many chats, and numbers users, groups and channels apart', async () => {
    const list = ['personal_chat', 'private_group', 'public_channel', 'saved_messages'].map(
      (type) => ({
        type,
        id: 1,
        messages: [message],
      }),
    )
    const account = {
      about: 'x',
      contacts: { list: [message] },
      chats: { list },
      left_chats: {
        list: [
          { ...chat, messages: [message] },
          { type: 'bot_chat', id: 9, messages: [message] },
        ],
      },
    }
    const { pieces } = await readAll(telegramFormat, [inputFile('result.json', account)])
    expect(pieces.map((piece) => piece.externalId.split('/')[0])).toEqual([
      'user1',
      'group1',
      'channel1',
      'user1',
      'channel77',
      'user9',
    ])
    expect(pieces.map((piece) => piece.fields.channelName)).toEqual([
      'user1',
      'group1',
      'channel1',
      'user1',
      'Ovens',
      'user9',
    ])
  })
})

describe('messages', () => {
  test('a quote has the id, the sender, the time in UTC and what it replies to', async () => {
    expect(
      await quoteOf({ ...message, reply_to_message_id: 4, reactions: [{ emoji: '👍', count: 2 }] }),
    ).toEqual({
      externalId: '5',
      text: 'Cold oven',
      speaker: 'Ada',
      createdAt: '2024-05-01T23:30:00.000Z',
      replyingTo: '4',
    })
  })

  test('a reply to another chat replies to no quote of this one', async () => {
    expect(
      await quoteOf({ ...message, reply_to_message_id: 4, reply_to_peer_id: 'channel9' }),
    ).not.toHaveProperty('replyingTo')
  })

  test('a text is a string, or a list of parts', async () => {
    const text = [
      'See ',
      { type: 'link', text: 'a.example' },
      { type: 'text_link', text: ' here', href: 'https://b.example' },
    ]
    expect((await quoteOf({ ...message, text }))?.text).toBe(
      'See a.example here (https://b.example)',
    )
  })

  test('a text may stand in its entities, or in the blocks of a rich message', async () => {
    const entities = {
      ...message,
      text: undefined,
      text_entities: [{ type: 'plain', text: 'Cold ' }, { text: 'oven' }],
    }
    expect((await quoteOf(entities))?.text).toBe('Cold oven')
    const nested = { type: 'bold', text: ['very ', { type: 'italic', text: 'cold' }] }
    const blocks = [
      { type: 'heading', size: 2, text: 'Ovens' },
      { type: 'paragraph', text: ['It is ', nested] },
      { type: 'blockquote', blocks: [{ type: 'paragraph', text: 'Since six' }] },
      { type: 'list', items: [{ text: 'Call Bo', checked: true }, 'Bake'] },
    ]
    const rich = { ...message, text: undefined, rich_message: { blocks } }
    expect((await quoteOf(rich))?.text).toBe('Ovens\nIt is very cold\nSince six\nCall Bo\nBake')
  })

  test.each(['text', 'blocks'])(
    'a message whose %s nests too deep is rejected, and the others are read',
    async (name) => {
      const deep = `${`{"${name}":[`.repeat(20_000)}${']}'.repeat(20_000)}`
      const one = JSON.stringify({ ...message, text: 'Hi', rich_message: 0 }).replace(
        '"rich_message":0',
        `"rich_message":${deep}`,
      )
      const file = JSON.stringify({ ...chat, messages: [0, message] }).replace('[0', `[${one}`)
      const found = await readAll(telegramFormat, [inputFile('result.json', file)])
      expect(found.rejected[0]?.reason).toBe('The record nests too deep.')
      expect(found.pieces.length).toBe(1)
    },
  )

  test.each([
    ['a named file', { file: 'files/loaf.pdf', file_name: 'Loaf.pdf' }, 'Loaf.pdf'],
    ['a photo', { photo: 'photos/photo_1.jpg' }, 'photo_1.jpg'],
    ['a photo that was not exported', { photo: '(File not included.)' }, 'photo'],
    [
      'a sticker that was not exported',
      { file: '(File not included.)', media_type: 'sticker', sticker_emoji: '🍞' },
      'sticker 🍞',
    ],
    ['a place', { location_information: { latitude: 1, longitude: 2 } }, 'location'],
  ])('%s gives a name', async (_, fields, name) => {
    expect(await quoteOf({ ...message, text: '', ...fields })).toMatchObject({
      text: '',
      attachments: [name],
    })
  })

  test('a poll is its question and answers, a deleted account is its id', async () => {
    const quote = await quoteOf({
      ...message,
      from: null,
      text: '',
      poll: { question: 'Rye?', answers: [{ text: 'Yes', voters: 1 }, { text: 'No' }] },
    })
    expect(quote).toMatchObject({ text: 'Rye?\n• Yes\n• No', speaker: 'user1' })
  })

  test('what a channel publishes is by the person who signs it', async () => {
    const signed = { ...message, from: 'Ovens', from_id: 'channel77', author: 'Bo' }
    expect((await quoteOf(signed))?.speaker).toBe('Bo')
  })

  test.each([
    [{ poll: { question: 'Rye?', answers: [{ text: 'Yes' }] } }, 'Cold oven\nRye?\n• Yes'],
    [
      { todo_list: { title: ['To ', { type: 'bold', text: 'do' }], answers: [{ text: 'Heat' }] } },
      'Cold oven\nTo do\n• Heat',
    ],
    [{ place_name: 'Bakery', address: '1 Mill St' }, 'Cold oven\nBakery\n1 Mill St'],
    [{ game_title: 'Bread', game_description: 'Bake' }, 'Cold oven\nBread\nBake'],
    [{ invoice_information: { title: 'Loaf', description: 'Rye' } }, 'Cold oven\nLoaf\nRye'],
    [{ contact_information: { first_name: 'Bo', phone_number: '+1 2' } }, 'Cold oven\nBo +1 2'],
  ])('what has words stands beside the text: %j', async (fields, text) => {
    expect((await quoteOf({ ...message, ...fields }))?.text).toBe(text)
  })

  test('the words beside a gift are of its giver', async () => {
    const gift = { action: 'send_star_gift', actor: 'Bo', actor_id: 'user2', from: undefined }
    const words = [{ type: 'plain', text: 'For the oven' }]
    const { pieces } = await find([
      { ...message, ...gift, type: 'service', text: '', gift_text: words },
      { ...message, ...gift, type: 'service', text: '', gift_text: '' },
    ])
    expect(pieces.map(({ quotes: [quote] }) => [quote?.speaker, quote?.text])).toEqual([
      ['Bo', 'For the oven'],
    ])
  })

  test('notices are skipped, also without a date in UTC', async () => {
    const found = await find([
      { ...message, type: 'service', date_unixtime: undefined },
      { ...message, type: 'unsupported' },
    ])
    expect(found.noted).toEqual({
      'skipped: notices by Telegram, such as of who joined a chat': 1,
      'skipped: messages that this version of Telegram could not export': 1,
    })
  })

  test('what is no message is rejected with its place', async () => {
    const found = await find(
      [
        { ...message, id: undefined },
        { ...message, date: 'soon', date_unixtime: 'x' },
      ],
      { timezone: 'UTC' },
    )
    expect(found.rejected.map(({ reason, place }) => [reason, place.pointer])).toEqual([
      ['a message without an `id`', '/messages/0'],
      ['a message without a valid `date_unixtime` or `date`', '/messages/1'],
    ])
  })
})

test('the chat may stand behind its messages, and its type must be known', async () => {
  const { id, name, type } = chat
  const found = await readAll(telegramFormat, [
    inputFile('result.json', { id, messages: [message], name, type }),
  ])
  expect(found.pieces[0]).toMatchObject({
    externalId: 'channel77/2024-05-01',
    fields: { channelName: 'Ovens' },
  })
  const untyped = await readAll(telegramFormat, [
    inputFile('result.json', { id, name, messages: [message] }),
  ])
  expect(untyped.rejected.map(({ reason }) => reason)).toEqual([
    'the file names no chat, or not its type',
  ])
})

describe('local dates', () => {
  const local = { ...message, date_unixtime: undefined }

  test('of one message among others in UTC reject this message alone', async () => {
    const found = await find([message, local])
    expect(found.pieces).toHaveLength(1)
    expect(found.rejected).toMatchObject([
      { reason: 'a message without a valid `date_unixtime` or `date`' },
    ])
  })

  test('of the moment 0 are none, by which old programs mean no date', async () => {
    const zero = { ...message, date: '1970-01-01T01:00:00', date_unixtime: '0' }
    for (const options of [{}, { timezone: 'Europe/Paris' }]) {
      const found = await find([zero, message], options)
      expect([found.pieces.length, found.rejected.length]).toEqual([1, 1])
    }
  })

  test('need a time zone', async () => {
    await expect(find([local])).rejects.toThrow('pass the time zone')
    await expect(find([local], { timezone: 'Mars/Base' })).rejects.toThrow(
      '--timezone Mars/Base is no time zone',
    )
  })

  test.each([
    ['Europe/Berlin', '2024-05-02T01:30:00', '2024-05-01T23:30:00.000Z'],
    ['Europe/Berlin', '2024-03-31T01:59:59', '2024-03-31T00:59:59.000Z'],
    ['Europe/Berlin', '2024-03-31T03:00:00', '2024-03-31T01:00:00.000Z'],
    ['Europe/Berlin', '2024-10-27T02:30:00', '2024-10-27T00:30:00.000Z'],
    ['Europe/Berlin', '2024-10-27T03:00:00', '2024-10-27T02:00:00.000Z'],
    ['Asia/Kathmandu', '2024-01-01T05:44:00', '2023-12-31T23:59:00.000Z'],
    ['America/New_York', '2024-03-10T03:30:00', '2024-03-10T07:30:00.000Z'],
    ['Europe/Berlin', '2024-05-02T01:30:00Z', '2024-05-02T01:30:00.000Z'],
  ])('in %s, %s is %s', async (timezone, date, createdAt) => {
    expect((await find([{ ...local, date }], { timezone })).pieces[0]?.quotes[0]?.createdAt).toBe(
      createdAt,
    )
  })
})

async function quoteOf(one: unknown) {
  return (await find([one])).pieces[0]?.quotes[0]
}

function find(messages: readonly unknown[], options = {}) {
  return readAll(telegramFormat, [file(messages)], options)
}

function file(messages: readonly unknown[]) {
  return inputFile('result.json', { ...chat, messages })
}
