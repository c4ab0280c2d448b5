// Tests of the Discord format, on the server of a small bakery.
import { describe, expect, test } from 'vitest'
import { inputFile, readAll, recognises } from '../read-all.test-support.ts'
import { discordFormat } from './discord.ts'

const guild = { id: '900', name: 'Bakery' }
const channel = {
  id: '12884901888000000',
  type: 'GuildTextChat',
  categoryId: '8',
  category: 'Work',
  name: 'ovens',
}
const ada = { id: '1', name: 'ada', nickname: 'Ada', isBot: false }
const message = {
  id: '530805779645595660',
  type: 'Default',
  timestamp: '2024-05-01T23:30:00.5+02:00',
  content: 'Cold oven',
  author: ada,
}

test('of two copies that were not edited, the one of the later export comes last', async () => {
  const exported = (exportedAt: string, nickname: string) =>
    inputFile(`${nickname}.json`, {
      guild,
      channel,
      exportedAt,
      messages: [{ ...message, author: { ...ada, nickname } }],
    })
  const files = [
    exported('2024-06-02T00:00:00+00:00', 'Ada B.'),
    exported('2024-06-01T00:00:00+00:00', 'Ada'),
  ]
  const found = await readAll(discordFormat, files)
  expect(found.quotes(`${channel.id}/2024-05-01`).map(({ speaker }) => speaker)).toEqual([
    'Ada',
    'Ada B.',
  ])
})

test('recognises the JSON of DiscordChatExporter', async () => {
  expect(await recognises(discordFormat, file([message]))).toBe(true)
  expect(
    await recognises(discordFormat, inputFile('a.json', { channel, guild, messages: [message] })),
  ).toBe(true)
  expect(await recognises(discordFormat, inputFile('a.json', { channel }))).toBe(false)
  expect(await recognises(discordFormat, inputFile('a.txt', { guild }))).toBe(false)
})

describe('sources', () => {
  test('a channel is one source for each UTC day', async () => {
    const next = { ...message, id: '530805779645595661', timestamp: '2024-05-02T02:00:00+02:00' }
    const { pieces } = await find([message, next])
    expect(pieces.map((piece) => piece.externalId)).toEqual([
      `${channel.id}/2024-05-01`,
      `${channel.id}/2024-05-02`,
    ])
    expect(pieces[0]?.fields).toEqual({
      title: 'ovens, 2024-05-01',
      channelName: 'ovens',
      channelId: channel.id,
      url: `https://discord.com/channels/900/${channel.id}`,
      createdAt: '2024-05-01T00:00:00.000Z',
    })
  })

  test.each(['GuildPublicThread', 'GuildPrivateThread', 'GuildNewsThread', 11])(
    'a %s is one source',
    async (type) => {
      const thread = { ...channel, type, id: '530805775262679064', name: 'Cold again' }
      const { pieces } = await readAll(discordFormat, [
        inputFile('t.json', { guild, channel: thread, messages: [message] }),
      ])
      expect(pieces[0]).toMatchObject({
        externalId: thread.id,
        fields: { title: 'Cold again', createdAt: '2019-01-04T17:52:38.717Z' },
      })
    },
  )

  test('direct messages have a URL without a server', async () => {
    const direct = {
      guild: { id: '0', name: 'Direct Messages' },
      channel: { ...channel, type: 'DirectTextChat' },
    }
    const { pieces } = await readAll(discordFormat, [
      inputFile('d.json', { ...direct, messages: [message] }),
    ])
    expect(pieces[0]?.fields.url).toBe(`https://discord.com/channels/@me/${channel.id}`)
  })

  test('messages are ordered by their ids, whatever their order in the file', async () => {
    const found = await find([message, { ...message, id: '99', content: 'first' }])
    expect(found.quotes(`${channel.id}/2024-05-01`).map((quote) => quote.text)).toEqual([
      'first',
      'Cold oven',
    ])
  })
})

describe('messages', () => {
  test('a quote has the id, the nickname and the time in UTC', async () => {
    expect(await quoteOf(message)).toEqual({
      externalId: message.id,
      text: 'Cold oven',
      speaker: 'Ada',
      createdAt: '2024-05-01T21:30:00.500Z',
    })
  })

  test('a nickname has no invisible marks, and plain spaces', async () => {
    const author = { ...ada, nickname: '\u2068Ada\u00A0B\u2069' }
    expect((await quoteOf({ ...message, author }))?.speaker).toBe('Ada B')
  })

  test('ids in a text are names, if the message has them', async () => {
    const bo = { id: '2', name: 'bo', nickname: 'Bo', roles: [{ id: '5', name: 'Bakers' }] }
    const content = '<@2> <@!1> <@&5> <@7> <:loaf:9> <a:oven:10> a<b>'
    const { pieces } = await find([{ ...message, content, mentions: [bo] }])
    expect(pieces[0]?.quotes[0]?.text).toBe('@Bo @Ada @Bakers <@7> :loaf: :oven: a<b>')
  })

  test('old exports have no nickname, and bots are sent', async () => {
    expect(
      (await quoteOf({ ...message, author: { id: '2', name: 'alarm', isBot: true } }))?.speaker,
    ).toBe('alarm')
  })

  test.each([
    ['a reply', { type: 'Reply', reference: { type: 'Default', messageId: '7' } }, '7'],
    ['a reply in an old export', { type: 'Reply', reference: { messageId: '7' } }, '7'],
    [
      'a pin or the start of a thread',
      { type: 'Default', reference: { messageId: '7' } },
      undefined,
    ],
    ['a forward', { type: 'Reply', reference: { type: 'Forward', messageId: '7' } }, undefined],
  ])('%s', async (_, fields, replyingTo) => {
    expect((await quoteOf({ ...message, ...fields }))?.replyingTo).toBe(replyingTo)
  })

  test('the text of a forward lies in forwardedMessage', async () => {
    const forwardedMessage = { content: 'Hot oven', attachments: [{ fileName: 'oven.jpg' }] }
    const reference = { type: 'Forward', messageId: '7' }
    expect(await quoteOf({ ...message, content: '', reference, forwardedMessage })).toMatchObject({
      text: 'Hot oven',
      attachments: ['oven.jpg'],
    })
    expect((await quoteOf({ ...message, reference, forwardedMessage }))?.text).toBe(
      'Cold oven\nHot oven',
    )
  })

  test('embeds count where the text is empty', async () => {
    const embeds = [
      { title: 'Build 7', description: 'passed', fields: [{ name: 'by', value: 'Ada' }] },
    ]
    expect((await quoteOf({ ...message, content: '', embeds }))?.text).toBe(
      'Build 7\npassed\nby\nAda',
    )
    expect((await quoteOf({ ...message, embeds }))?.text).toBe('Cold oven')
  })

  test('embeds of a bot stand beside its text, previews of links and what has no words are counted', async () => {
    const url = 'https://a.example/7'
    const bot = { id: '2', name: 'alarm', isBot: true }
    const alarm = {
      author: { name: 'Oven 3' },
      description: 'cold',
      footer: { text: 'since six' },
      image: { url },
    }
    const messages = [
      {
        ...message,
        content: `@here ${url}`,
        author: bot,
        embeds: [alarm, { url, title: 'A' }],
        components: [{}],
      },
      { ...message, id: '2', embeds: [{ url: 'https://b.example', title: 'Bread' }] },
      { ...message, id: '3', content: '', forwardedMessage: { content: 'New', embeds: [alarm] } },
    ]
    const found = await find(messages)
    expect(found.pieces.map(({ quotes }) => quotes[0]?.text)).toEqual([
      `@here ${url}\nOven 3\ncold\nsince six`,
      'Cold oven',
      'New\nOven 3\ncold\nsince six',
    ])
    expect(found.noted).toEqual({
      'skipped: previews of links': 2,
      'skipped: images of embeds': 2,
      'skipped: rows of buttons': 1,
    })
  })

  test('of two copies the one that was edited later comes last, whichever file comes first', async () => {
    const edited = {
      ...message,
      content: 'Warm oven',
      timestampEdited: '2024-06-01T10:00:00+00:00',
    }
    const again = { ...message, content: 'Hot oven', timestampEdited: '2024-06-01T13:00:00+02:00' }
    const found = await find([again, edited, message])
    expect(found.quotes(`${channel.id}/2024-05-01`).map(({ text }) => text)).toEqual([
      'Cold oven',
      'Warm oven',
      'Hot oven',
    ])
  })

  test('files and stickers are named, reactions are no votes', async () => {
    const quote = await quoteOf({
      ...message,
      attachments: [{ fileName: 'loaf.png' }, { url: 'https://cdn.example/7/rye.png' }],
      stickers: [{ name: 'Laugh' }],
      reactions: [{ emoji: { name: '👍' }, count: 3 }],
    })
    expect(quote?.attachments).toEqual(['loaf.png', 'rye.png', 'Laugh'])
    expect(quote).not.toHaveProperty('upVotes')
  })

  test('a poll has its question and its answers', async () => {
    const poll = { question: 'Rye?', answers: [{ id: 1, text: 'Yes' }, { text: 'No' }] }
    const { pieces } = await find([{ ...message, content: '', poll }])
    expect(pieces[0]?.quotes[0]?.text).toBe('Rye?\n• Yes\n• No')
  })

  test('notices are skipped', async () => {
    const found = await find([
      { ...message, type: 'ChannelPinnedMessage' },
      { ...message, type: '8' },
      { ...message, type: '21', content: '' },
      {
        ...message,
        type: 'PollResult',
        content: '',
        embeds: [{ fields: [{ name: 'poll_question_text', value: 'Rye?' }] }],
      },
    ])
    expect(found.pieces).toEqual([])
    expect(found.noted).toEqual({ 'skipped: notices by Discord, such as of pins': 4 })
  })

  test('what is no message is rejected with its place', async () => {
    const found = await find([
      { ...message, id: undefined },
      { ...message, timestamp: 'soon' },
      { ...message, id: 'first' },
    ])
    expect(found.rejected.map(({ reason, place }) => [reason, place.pointer])).toEqual([
      ['a message without an `id`', '/messages/0'],
      ['a message without a valid `timestamp`', '/messages/1'],
      ['a message whose `id` is not a number', '/messages/2'],
    ])
  })

  test('a file without its channel is rejected', async () => {
    const found = await readAll(discordFormat, [
      inputFile('x.json', { guild, messages: [message] }),
    ])
    expect(found.rejected[0]?.reason).toBe('the file names no channel before its messages')
  })
})

async function quoteOf(one: unknown) {
  return (await find([one])).pieces[0]?.quotes[0]
}

function find(messages: readonly unknown[]) {
  return readAll(discordFormat, [file(messages)])
}

function file(messages: readonly unknown[]) {
  return inputFile('Bakery - ovens.json', {
    guild,
    channel,
    dateRange: {},
    messages,
    messageCount: messages.length,
  })
}
