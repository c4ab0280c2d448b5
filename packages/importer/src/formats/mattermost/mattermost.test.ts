// Tests of the Mattermost format, on the export of a small bakery.
import { expect, test } from 'vitest'
import { filesByFormat, inputFile, readAll, recognises } from '../read-all.test-support.ts'
import { madeId } from '../values/digest.ts'
import { mattermostFormat } from './mattermost.ts'

const lines = (...records: object[]) =>
  inputFile('import.jsonl', records.map((each) => JSON.stringify(each)).join('\n'))
const find = (...records: object[]) => readAll(mattermostFormat, [lines(...records)])
const version = { type: 'version', version: 1 }
const channel = {
  type: 'channel',
  channel: { team: 'bakery', name: 'ovens', display_name: 'Ovens', type: 'O' },
}
const post = {
  team: 'bakery',
  channel: 'ovens',
  user: 'ada',
  message: 'Cold oven\nsince six',
  create_at: 1714555800123,
  attachments: [{ path: 'data/20240501/oven.jpg' }],
  replies: [{ user: 'bo', message: 'Warm now', create_at: 1714555900000 }],
}
const ofPost = madeId('1714555800123/ada', [post.message, 'oven.jpg'].join('\0'))
const id = `mattermost/bakery/ovens/${ofPost}`

test('recognises an export by its lines', async () => {
  const files = ['a.jpg', 'rows.csv'].map((name) => inputFile(`data/${name}`, 'a,b'))
  expect(await filesByFormat([...files, lines(version)])).toEqual({
    mattermost: ['data/a.jpg', 'data/rows.csv', 'import.jsonl'],
  })
  expect(await recognises(mattermostFormat, inputFile('a.jsonl', '{"type":"x"}'))).toBe(false)
  expect(
    await recognises(mattermostFormat, inputFile('data.json', '{"type":"version","version":1}\n')),
  ).toBe(true)
  expect(
    await recognises(mattermostFormat, inputFile('data.json', '{"type":"x","version":1}\n')),
  ).toBe(false)
})

test('a post with its replies is a source', async () => {
  const found = await find(version, channel, { type: 'post', post }, { type: 'user', user: {} })
  expect(found.pieces[0]?.fields).toEqual({
    placeholderTitle: 'Thread in Ovens',
    title: 'Cold oven',
    channelName: 'Ovens',
    channelId: 'bakery/ovens',
    createdAt: '2024-05-01T09:30:00.123Z',
  })
  expect(found.quotes(id)).toEqual([
    {
      externalId: ofPost,
      text: 'Cold oven\nsince six',
      speaker: 'ada',
      createdAt: '2024-05-01T09:30:00.123Z',
      attachments: ['oven.jpg'],
    },
    {
      externalId: madeId('1714555900000/bo', 'Warm now'),
      text: 'Warm now',
      speaker: 'bo',
      createdAt: '2024-05-01T09:31:40.000Z',
      replyingTo: ofPost,
    },
  ])
})

test('direct posts belong to their members', async () => {
  const { pieces } = await find({
    type: 'direct_post',
    direct_post: { ...post, channel_members: ['bo', 'ada'], team: undefined },
  })
  expect(pieces[0]).toMatchObject({
    externalId: `mattermost/ada, bo/${ofPost}`,
    fields: { channelName: 'ada, bo' },
  })
})

test('a direct post may name no members', async () => {
  const { pieces } = await find({
    type: 'direct_post',
    direct_post: { ...post, channel: undefined, channel_members: [] },
  })
  expect(pieces[0]?.externalId).toBe(`mattermost/direct messages/${ofPost}`)
  const unnamed = await find({
    type: 'direct_post',
    direct_post: { ...post, channel: undefined, channel_members: null },
  })
  expect(unnamed.pieces[0]?.externalId).toBe(`mattermost/direct messages/${ofPost}`)
})

test('replies of one millisecond and author stay apart unless they are equal', async () => {
  const bot = { user: 'bot', create_at: 1714555900000 }
  const replies = ['One', 'Two', 'One', 'Two', 'Three'].map((message) => ({ ...bot, message }))
  const own = { user: post.user, create_at: post.create_at, message: 'Mine' }
  const found = await find({ type: 'post', post: { ...post, replies: [...replies, own] } })
  expect(found.quotes(id)).toHaveLength(7)
  expect(new Set(found.quotes(id).map(({ externalId }) => externalId)).size).toBe(5)
})

test('what an integration attaches stands beside the text, notices are skipped, an edited post is another one', async () => {
  const attached = {
    ...post,
    replies: [],
    props: { attachments: [{ title: 'Oven 3', fields: [{ title: 'is', value: 200 }] }] },
  }
  const edited = { ...post, message: 'Warm', edit_at: 1714556000000, replies: [] }
  const notice = { ...post, type: 'system_join_channel', replies: [] }
  const found = await find(
    ...[edited, attached, notice].map((one) => ({ type: 'post', post: one })),
  )
  expect(found.pieces.map(({ quotes }) => quotes[0]?.text)).toEqual([
    'Warm',
    'Cold oven\nsince six\nOven 3\nis\n200',
  ])
  expect(new Set(found.pieces.map(({ externalId }) => externalId)).size).toBe(2)
  expect(found.noted).toEqual({
    'skipped: notices by Mattermost, such as of who joined a channel': 1,
  })
})

test('a webhook chooses the name of a speaker, which identifies no post', async () => {
  const hook = { ...post, replies: [], props: { from_webhook: 'true', override_username: 'Alarm' } }
  const found = await find({ type: 'post', post: hook })
  expect(found.quotes(id)).toMatchObject([{ externalId: ofPost, speaker: 'Alarm' }])
})

test('rejects what is no post, and counts other files', async () => {
  const bad = [
    { type: 'post', post: { ...post, create_at: 'soon' } },
    { post: { ...post, replies: [{}] } },
    {},
    { type: 'post', post: null },
  ]
  const found = await readAll(mattermostFormat, [inputFile('data/a.jsonl', '{}'), lines(...bad)])
  expect(found.rejected.map(({ reason }) => reason)).toEqual([
    'a post without `create_at`, `user` or `channel`',
    'a reply without `create_at` or `user`',
    'a line without a `type`',
    'a line without its post',
  ])
  expect(found.noted).toEqual({ 'skipped: files without messages: file attachments': 1 })
})
