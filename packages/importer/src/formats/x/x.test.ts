// Tests of the X format, on the archive of a small bakery.
import { expect, test } from 'vitest'
import { filesByFormat, inputFile, readAll, recognises } from '../read-all.test-support.ts'
import { xFormat } from './x.ts'

const post = {
  id_str: '100',
  id: '100',
  full_text: 'Bread &amp; butter https://t.co/a1 https://t.co/m1\nFresh',
  created_at: 'Wed May 01 09:30:00 +0000 2024',
  favorite_count: '3',
  entities: { urls: [{ url: 'https://t.co/a1', expanded_url: 'https://a.example/?x=1&y=2' }] },
  extended_entities: {
    media: [{ url: 'https://t.co/m1', media_url_https: 'https://pbs.twimg.com/media/loaf.jpg' }],
  },
}
const answer = {
  ...post,
  id_str: '110',
  full_text: '@me More',
  in_reply_to_status_id_str: '100',
  extended_entities: {},
}
const script = (name: string, records: unknown) =>
  `window.YTD.${name}.part0 = ${JSON.stringify(records, null, 2)}`
const posts = (records: object[], path = 'data/tweets.js') =>
  inputFile(
    path,
    script(
      'tweets',
      records.map((tweet) => ({ tweet })),
    ),
  )
const account = inputFile(
  'data/account.js',
  script('account', [{ account: { username: 'bakery' } }]),
)

test('recognises an archive by its posts, also of old archives', async () => {
  const files = [account, posts([post])]
  expect(await filesByFormat(files)).toEqual({ x: files.map(({ path }) => path) })
  expect(await recognises(xFormat, inputFile('tweet.js', script('tweet', [post])))).toBe(true)
  expect(await recognises(xFormat, account)).toBe(false)
})

test.each([
  ['a community', 'community-tweet', { tweet: answer }],
  ['a circle', 'twitter-circle-tweet', { tweet: answer }],
  ['a circle, by the name of its file,', 'twitter-circle-tweet', { twitterCircleTweet: answer }],
])('posts in %s are read, too', async (_, name, element) => {
  const others = inputFile(`data/${name}.js`, script(name.replaceAll('-', '_'), [element]))
  expect(await recognises(xFormat, others)).toBe(true)
  const found = await readAll(xFormat, [account, posts([post]), others])
  expect(found.quotes('100').map(({ externalId }) => externalId)).toEqual(['100', '110'])
  expect(found.notes).toEqual([])
})

test('a long post that can not be read is rejected', async () => {
  const notes = inputFile(
    'data/note-tweet.js',
    'window.YTD.note_tweet.part0 = [{"noteTweet": 1 2}]',
  )
  const { rejected } = await readAll(xFormat, [account, posts([post]), notes])
  expect(rejected).toMatchObject([
    { reason: expect.stringMatching(/^The record is not JSON/), place: { pointer: '/0' } },
  ])
})

test('a post is a source, with its links unfolded and its media named', async () => {
  const { pieces } = await readAll(xFormat, [account, posts([post])])
  expect(pieces[0]).toMatchObject({
    service: 'x',
    externalId: '100',
    fields: {
      title: 'Bread & butter https://a.example/?x=1&y=2',
      url: 'https://x.com/bakery/status/100',
      createdAt: '2024-05-01T09:30:00.000Z',
    },
  })
  expect(pieces[0]?.quotes).toEqual([
    {
      externalId: '100',
      text: 'Bread & butter https://a.example/?x=1&y=2 \nFresh',
      speaker: 'bakery',
      createdAt: '2024-05-01T09:30:00.000Z',
      upVotes: 3,
      attachments: ['loaf.jpg'],
    },
  ])
})

test('answers join the conversation that they belong to, over all parts', async () => {
  const second = { ...answer, id_str: '120', in_reply_to_status_id_str: '110' }
  const toOther = {
    ...answer,
    id_str: '130',
    in_reply_to_status_id_str: '7',
    in_reply_to_screen_name: 'ada',
  }
  const found = await readAll(xFormat, [
    posts([second, toOther], 'tweets-part1.js'),
    posts([answer, post]),
  ])
  expect(found.quotes('100').map(({ externalId, replyingTo }) => [externalId, replyingTo])).toEqual(
    [
      ['100', undefined],
      ['110', '100'],
      ['120', '110'],
    ],
  )
  expect(found.pieces.find(({ externalId }) => externalId === '7')).toMatchObject({
    fields: { placeholderTitle: 'Conversation 7' },
    quotes: [{ externalId: '130', replyingTo: '7' }],
  })
})

test('the versions of a post are one quote, whose last version comes last, and answers name the first one', async () => {
  const versions = { editTweetIds: ['100', '105'] }
  const first = { ...post, full_text: 'Bred', edit_info: { initial: versions } }
  const last = {
    ...post,
    id_str: '105',
    full_text: 'Bread',
    edit_info: { edit: { initialTweetId: '100', editControlInitial: versions } },
  }
  const found = await readAll(xFormat, [
    posts([last, first, { ...answer, in_reply_to_status_id_str: '105' }]),
  ])
  expect(
    found.quotes('100').map(({ externalId, text, replyingTo }) => [externalId, text, replyingTo]),
  ).toEqual([
    ['100', 'Bred', undefined],
    ['100', 'Bread', undefined],
    ['110', '@me More', '100'],
  ])
})

test('a long post has the text of its note', async () => {
  const long = `On bread &amp; butter, ${'which is good, '.repeat(20)}`
  const note = {
    noteTweet: {
      createdAt: '2024-05-01T09:30:01.000Z',
      core: {
        text: `${long}https://t.co/z`,
        urls: [{ shortUrl: 'https://t.co/z', expandedUrl: 'https://z.example' }],
      },
    },
  }
  const notes = inputFile('note-tweet.js', script('note_tweet', [note]))
  const cut = { ...post, full_text: `@ada ${long.slice(0, 250)}… https://t.co/z` }
  const days = [cut, { ...cut, id_str: '2', created_at: '2024-05-02' }]
  const { pieces, noted } = await readAll(xFormat, [notes, posts(days)])
  expect(noted).toEqual({})
  const alone = await readAll(xFormat, [notes, posts([post])])
  expect(alone.noted).toEqual({ 'skipped: long posts that belong to no post of the archive': 1 })
  const [whole, other] = pieces.map(({ quotes }) => quotes[0]?.text)
  expect(whole).toBe(`${long.replace('&amp;', '&')}https://z.example`)
  expect(other).toContain('…')
})

test('reposts and other files are counted, and what is no post is rejected', async () => {
  const found = await readAll(xFormat, [
    posts([
      { ...post, full_text: 'RT @ada: Bread' },
      { ...post, id_str: undefined, id: 7 },
      { ...post, created_at: 'soon' },
    ]),
    inputFile('data/direct-messages.js', ''),
    account,
  ])
  expect(found.pieces).toEqual([])
  expect(found.noted).toEqual({
    'skipped: reposts of what others wrote': 1,
    'skipped: files without messages: messages, deleted posts, likes and so on of X': 1,
  })
  expect(found.rejected.map(({ reason, context }) => [reason, context])).toEqual([
    ['a post without an `id_str`', { username: 'bakery' }],
    ['a post without a valid `created_at`', { username: 'bakery' }],
  ])
})
