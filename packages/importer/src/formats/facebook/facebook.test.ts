// Tests of the Facebook format, on the download of a baker.
import { expect, test } from 'vitest'
import { filesByFormat, inputFile, readAll, recognises } from '../read-all.test-support.ts'
import { madeId } from '../values/digest.ts'
import { facebookFormat } from './facebook.ts'

/** Writes a text as Facebook does. */
const escaped = (text: string) => Buffer.from(text).toString('latin1')
const message = {
  sender_name: escaped('Zoë'),
  timestamp_ms: 1714555800123,
  content: escaped('Crème brûlée 🍮'),
}
const chat = (
  messages: object[],
  more: object = {},
  path = 'messages/inbox/zoe_77/message_1.json',
) =>
  inputFile(path, {
    participants: [{ name: escaped('Zoë') }, { name: 'Ada' }],
    messages,
    title: escaped('Zoë'),
    is_still_participant: true,
    thread_path: 'inbox/zoe_77',
    ...more,
  })
const find = (...messages: object[]) => readAll(facebookFormat, [chat(messages)])

test('recognises a download among its other files', async () => {
  const others = Array.from({ length: 100 }, (_, at) =>
    inputFile(`ads_information/${at}.json`, { advertisers: [] }),
  )
  const sent = inputFile('messages/inbox/zoe_77/files/rows.csv', 'a,b\n')
  const files = [...others, sent, chat([message])]
  expect(await filesByFormat(files)).toEqual({ facebook: files.map(({ path }) => path) })
  expect(await recognises(facebookFormat, others[0] ?? sent)).toBe(false)
})

test('a file of somebody else in a folder of a download is not its own', async () => {
  const files = [
    chat([message]),
    inputFile('friends/friends.json', { friends: [{ name: 'Bo', timestamp: 1714555800 }] }),
    inputFile('connections/followers/who.json', { followers_v3: [{ name: 'Bo' }] }),
    inputFile('your_instagram_activity/threads/viewed.json', [{ string_map_data: {} }]),
    inputFile('no-data.txt', 'No data'),
  ]
  const folders = 'posts friends media/posts messages/inbox/bo_1 your_facebook_activity/messages/x'
  const others = folders
    .split(' ')
    .flatMap((folder) => [
      inputFile(`${folder}/notes.json`, [{ id: 1, note: 'Seventeen boats' }]),
      inputFile(`${folder}/stray.json`, 'Seventeen boats'),
      inputFile(`${folder}/chat.json`, [{ timestamp: 1714555800, body: 'Seventeen boats' }]),
      inputFile(`${folder}/log.jsonl`, '{"text":"Seventeen boats"}\n'),
      inputFile(`${folder}/log.json`, '{"body":"Seventeen boats"}\n{"body":"Two sails"}\n'),
    ])
  expect(await filesByFormat([...files, ...others])).toEqual({
    facebook: files.map(({ path }) => path),
    unread: others.map(({ path }) => `x/${path}`),
  })
})

test('a day of a chat is a source, with its texts decoded', async () => {
  const { pieces } = await find(message)
  expect(pieces[0]).toMatchObject({
    service: 'facebook',
    externalId: '77/2024-05-01',
    fields: {
      title: 'Zoë, 2024-05-01',
      channelName: 'Zoë',
      channelId: '77',
      createdAt: '2024-05-01T00:00:00.000Z',
    },
    quotes: [{ text: 'Crème brûlée 🍮', speaker: 'Zoë', createdAt: '2024-05-01T09:30:00.123Z' }],
  })
})

test('the parts of a chat are one source, oldest first, also after it moved, and copies have one id', async () => {
  const older = { ...message, content: 'older', timestamp_ms: 1714555700000 }
  const moved = { thread_path: 'e2ee_cutover/zoemiller_77' }
  const found = await readAll(facebookFormat, [
    chat([message, older]),
    chat(
      [older, { ...older, content: 'other' }],
      moved,
      'e2ee_cutover/zoemiller_77/message_2.json',
    ),
  ])
  const quotes = found.quotes('77/2024-05-01')
  expect(quotes.map(({ text }) => text)).toEqual(['older', 'older', 'other', 'Crème brûlée 🍮'])
  expect(new Set(quotes.map(({ externalId }) => externalId)).size).toBe(3)
})

test('what was shared stands beside the text, files are named, what was unsent is skipped, as are notices', async () => {
  const found = await find(
    { ...message, share: { link: 'https://a.example', share_text: escaped('Süß') } },
    {
      ...message,
      content: undefined,
      photos: [{ uri: 'messages/photos/1.jpg' }],
      sticker: { uri: 's/2.png' },
    },
    { ...message, is_unsent: true },
    { ...message, content: 'Ada called you.', call_duration: 61 },
    { ...message, content: 'Ada added Bo to the group.', type: 'Subscribe' },
  )
  expect(found.pieces.map(({ quotes: [quote] }) => [quote?.text, quote?.attachments])).toEqual([
    ['Crème brûlée 🍮\nSüß\nhttps://a.example', undefined],
    ['', ['1.jpg', '2.png']],
  ])
  expect(found.noted).toEqual({
    'skipped: messages that were unsent': 1,
    'skipped: notices by Facebook, such as of calls': 2,
  })
})

test('reads the download of chats that are encrypted from end to end', async () => {
  const encrypted = {
    participants: ['Zoë', 'Ada'],
    threadName: 'Zoë_12',
    messages: [
      {
        isUnsent: false,
        media: [],
        reactions: [],
        senderName: 'Zoë',
        text: 'Crème',
        timestamp: 1714555800123,
        type: 'text',
      },
      {
        isUnsent: false,
        media: [{ uri: './media/a.jpg' }],
        senderName: 'Zoë',
        text: '',
        timestamp: 1714555800124,
      },
      { isUnsent: true, media: [], senderName: 'Zoë', text: '', timestamp: 1714555800125 },
    ],
  }
  const file = inputFile('Zoë_12.json', encrypted)
  expect(await recognises(facebookFormat, file)).toBe(true)
  const found = await readAll(facebookFormat, [file])
  expect(found.pieces[0]).toMatchObject({
    externalId: 'Zoë_12/2024-05-01',
    fields: { channelName: 'Zoë' },
    quotes: [{ text: 'Crème', speaker: 'Zoë' }],
  })
  expect(found.pieces[1]?.quotes[0]?.attachments).toEqual(['a.jpg'])
  expect(found.noted).toEqual({ 'skipped: messages that were unsent': 1 })
})

test('a person who is mentioned has a name', async () => {
  const { pieces } = await find({ ...message, content: escaped('Hi @[1001:2048:Zoë], see a@[b]') })
  expect(pieces[0]?.quotes[0]?.text).toBe('Hi Zoë, see a@[b]')
})

test('a text that is no escape stays', async () => {
  const { pieces } = await find({ ...message, content: 'é' }, { ...message, content: 'žluť' })
  expect(pieces.map(({ quotes }) => quotes[0]?.text)).toEqual(['é', 'žluť'])
})

test('posts and comments are sources, in all lists that Facebook writes', async () => {
  const post = {
    timestamp: 1714555800,
    data: [{ post: escaped('Fresh bread ☀') }, { update_timestamp: 1714555900 }],
    attachments: [
      { data: [{ external_context: { name: 'Shop', url: 'https://a.example' } }] },
      { data: [{ media: { uri: 'posts/loaf.jpg', description: escaped('Fresh bread ☀') } }] },
    ],
    title: 'Ada updated her status.',
  }
  const comment = {
    timestamp: 1714555900,
    data: [{ comment: { timestamp: 1714555900, comment: 'Nice', author: 'Ada', group: 'Bakers' } }],
    title: "Ada commented on Bo's post.",
  }
  const files = [
    inputFile('posts/your_posts_1.json', [post, { timestamp: 1, title: 'Ada was here.' }]),
    inputFile('comments/comments.json', { comments_v2: [comment] }),
    inputFile('ads/a.json', {}),
    inputFile('posts/loaf.jpg', 'x'),
  ]
  for (const file of files.slice(0, 2)) expect(await recognises(facebookFormat, file)).toBe(true)
  const found = await readAll(facebookFormat, files)
  expect(
    found.pieces.map(({ externalId, fields, quotes }) => [externalId, fields, quotes[0]]),
  ).toEqual([
    [
      madeId('post/1714555800', 'Fresh bread ☀\nShop\nhttps://a.example\0loaf.jpg'),
      {
        title: 'Fresh bread ☀',
        createdAt: '2024-05-01T09:30:00.000Z',
        description: 'Ada updated her status.',
      },
      {
        externalId: expect.stringMatching(/^post\/1714555800-.{8}$/),
        text: 'Fresh bread ☀\nShop\nhttps://a.example',
        createdAt: '2024-05-01T09:30:00.000Z',
        attachments: ['loaf.jpg'],
      },
    ],
    [
      madeId('comment/1714555900', 'Nice'),
      {
        title: "Ada commented on Bo's post.",
        createdAt: '2024-05-01T09:31:40.000Z',
        description: "Ada commented on Bo's post.",
        channelName: 'Bakers',
      },
      {
        externalId: madeId('comment/1714555900', 'Nice'),
        text: 'Nice',
        createdAt: '2024-05-01T09:31:40.000Z',
        speaker: 'Ada',
      },
    ],
  ])
  expect(found.noted).toEqual({
    'skipped: posts without text and files': 1,
    'skipped: files without messages: data of Facebook other than chats, posts and comments': 1,
    'skipped: files without messages: media': 1,
  })
})

test('what has words in an attachment of a post is text', async () => {
  const attached = [
    { place: { name: 'Café', address: 'Kai 1', coordinate: { latitude: 1 } } },
    { life_event: { title: 'Opened a bakery' } },
    { poll: { question: 'Rye?', options: [{ option: 'Yes', voted: true }, { option: 'No' }] } },
    { event: { name: 'Baking', description: 'At six' } },
    { for_sale_item: { title: 'Oven', description: 'Cold' } },
    { name: 'Bakers' },
    { text: 'Rye, mostly' },
  ]
  const posts = attached.map((one, at) => ({
    timestamp: 1714555800 + at,
    title: 'Ada did something.',
    ...(at === 0 && { data: [{ post: 'Here' }] }),
    attachments: [{ data: [one] }],
  }))
  const { pieces, notes } = await readAll(facebookFormat, [
    inputFile('posts/your_posts_1.json', posts),
  ])
  expect(pieces.map(({ quotes }) => quotes[0]?.text)).toEqual([
    'Here\nCafé\nKai 1',
    'Opened a bakery',
    'Rye?\nYes\nNo',
    'Baking\nAt six',
    'Oven\nCold',
    'Bakers',
    'Rye, mostly',
  ])
  expect(notes).toEqual([])
})

test('old downloads count seconds', async () => {
  const old = {
    participants: [{ name: 'Ada' }],
    messages: [{ sender_name: 'Ada', timestamp: 1524558089, content: 'Hi' }],
  }
  const file = inputFile('messages/ada_7/message.json', {
    ...old,
    title: 'Ada',
    thread_path: 'inbox/ada_7',
  })
  const { pieces } = await readAll(facebookFormat, [file])
  expect(pieces[0]).toMatchObject({
    externalId: '7/2018-04-24',
    quotes: [{ createdAt: '2018-04-24T08:21:29.000Z' }],
  })
})

test('the photos of an album are one source, and posts of the same second are others', async () => {
  const photo = (uri: string) => ({
    timestamp: 1714555800,
    data: [],
    attachments: [{ data: [{ media: { uri } }] }],
  })
  const posts = [
    photo('a.jpg'),
    photo('b.jpg'),
    photo('b.jpg'),
    ...['Fresh', 'Stale'].map((post) => ({ timestamp: 1714555800, data: [{ post }] })),
  ]
  const found = await readAll(facebookFormat, [inputFile('your_posts_1.json', posts)])
  expect(new Set(found.quotes('post/1714555800').map(({ externalId }) => externalId)).size).toBe(2)
  expect(new Set(found.pieces.map(({ externalId }) => externalId)).size).toBe(3)
})

test('what is no message is rejected with the chat that it needs', async () => {
  const { rejected } = await find({ ...message, timestamp_ms: 'soon' })
  expect(rejected[0]).toMatchObject({
    reason: 'a message without a valid `timestamp_ms`',
    context: { title: 'Zoë', thread_path: 'inbox/zoe_77' },
  })
})

test('messages of a file that names no chat are rejected with what to add', async () => {
  const chat = { participants: [{ name: 'Ada' }], messages: [message] }
  const { rejected } = await readAll(facebookFormat, [inputFile('message_1.json', chat)])
  expect(rejected[0]?.reason).toMatch(/add "thread_path": "inbox\/NAME_1"/)
})
