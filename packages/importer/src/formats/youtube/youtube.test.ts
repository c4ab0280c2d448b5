// Tests of the YouTube format, on a video of a small bakery.
import { expect, test } from 'vitest'
import { filesByFormat, inputFile, readAll, recognises } from '../read-all.test-support.ts'
import { youtubeFormat } from './youtube.ts'

const info = {
  id: 'vid1',
  title: 'How to bake',
  description: 'Rye, mostly',
  channel: 'Bakery',
  channel_id: 'UC1',
  upload_date: '20240501',
  like_count: 7,
  comments: [
    {
      id: 'Ug1',
      parent: 'root',
      text: 'Nice',
      author: '@ada',
      timestamp: 1714555800,
      like_count: 2,
    },
    { id: 'Ug1.9', parent: 'Ug1', text: 'Thanks', author: '@bakery', timestamp: 1714555900 },
    { id: 'Ug2', parent: 'root', text: '', author: '@bo' },
  ],
  webpage_url: 'https://www.youtube.com/watch?v=vid1',
  extractor: 'youtube',
}
const comment = (id: string, more: object = {}) => ({
  kind: 'youtube#comment',
  id,
  snippet: {
    textDisplay: 'a &lt; b<br><a href="https://a.example">https://a.example</a>',
    authorDisplayName: '@ada',
    likeCount: 1,
    publishedAt: '2024-05-01T09:30:00Z',
    updatedAt: '2024-05-01T09:30:00Z',
    ...more,
  },
})
const thread = (top: object, answers: object[] = [], totalReplyCount = answers.length) => ({
  kind: 'youtube#commentThread',
  id: 'Ug1',
  snippet: { videoId: 'vid1', channelId: 'UC1', topLevelComment: top, totalReplyCount },
  replies: { comments: answers },
})
const page = (...items: object[]) => ({
  kind: 'youtube#commentThreadListResponse',
  pageInfo: {},
  items,
})

test('counts what yt-dlp wrote of another site', async () => {
  const { id, title, webpage_url, comments } = info
  const other = { id, title, webpage_url, extractor: 'BiliBili', comments }
  const found = await readAll(youtubeFormat, [inputFile('a [b].info.json', other)])
  expect(found.pieces).toEqual([])
  expect(found.noted).toEqual({ 'skipped: videos of other sites, and their comments': 4 })
})

test('reads the comments of yt-dlp, and replies to them', async () => {
  const file = inputFile('How to bake [vid1].info.json', info)
  expect(await recognises(youtubeFormat, file)).toBe(true)
  const { id, title, ...rest } = info
  const first = { id, title }
  const formats = Array.from({ length: 2_000 }, (_, at) => ({
    format_id: String(at),
    url: 'https://a.example',
  }))
  expect(await recognises(youtubeFormat, inputFile('a', { ...first, formats, ...rest }))).toBe(true)
  const found = await readAll(youtubeFormat, [file])
  expect(found.quotes('vid1')).toEqual([
    {
      externalId: 'Ug1',
      text: 'Nice',
      speaker: '@ada',
      createdAt: '2024-05-01T09:30:00.000Z',
      upVotes: 2,
    },
    {
      externalId: 'Ug1.9',
      text: 'Thanks',
      speaker: '@bakery',
      createdAt: '2024-05-01T09:31:40.000Z',
      replyingTo: 'Ug1',
    },
  ])
  expect(found.pieces.at(-1)?.fields).toEqual({
    title: 'How to bake',
    placeholderTitle: 'Video vid1',
    url: 'https://www.youtube.com/watch?v=vid1',
    description: 'Rye, mostly',
    channelName: 'Bakery',
    channelId: 'UC1',
    createdAt: '2024-05-01T00:00:00.000Z',
    upVotes: 7,
  })
  expect(found.noted).toEqual({ 'skipped: comments without text': 1 })
})

test('the files of a video lie together', async () => {
  const names = ['a.de.vtt', 'a.description', 'a.webm']
  const files = [
    ...names.map((name) => inputFile(name, 'x')),
    inputFile('b [vid1].info.json', info),
    inputFile('c.json', page(thread(comment('Ug8')))),
  ]
  expect(await filesByFormat(files)).toEqual({ youtube: files.map(({ path }) => path) })
  const found = await readAll(youtubeFormat, files)
  expect(found.noted).toMatchObject({
    'skipped: files without messages: descriptions, subtitles and live chats of videos': 2,
    'skipped: files without messages: media': 1,
  })
  expect(found.quotes('vid1').map(({ externalId }) => externalId)).toContain('Ug8')
})

test('reads pages of the Data API, alone, in a list, or as lines', async () => {
  const answer = comment('Ug1.9', {
    parentId: 'Ug1',
    textOriginal: 'Thanks',
    publishedAt: '2024-05-01T10:00:00Z',
  })
  const pages = [page(thread(comment('Ug1'), [answer], 3)), page(thread(comment('Ug2')))]
  for (const content of [pages, pages.map((one) => JSON.stringify(one)).join('\n')]) {
    const file = inputFile('comments.json', content)
    expect(await recognises(youtubeFormat, file)).toBe(true)
    const found = await readAll(youtubeFormat, [file])
    expect(
      found
        .quotes('vid1')
        .map(({ externalId, text, replyingTo }) => [externalId, text, replyingTo]),
    ).toEqual([
      ['Ug1', 'a < b\nhttps://a.example', undefined],
      ['Ug2', 'a < b\nhttps://a.example', undefined],
      ['Ug1.9', 'Thanks', 'Ug1'],
    ])
    expect(found.noted).toEqual({
      'skipped: threads whose replies are not all in the file (see comments.list)': 1,
    })
  }
})

test('reads comments that stand apart, and the videos that they belong to', async () => {
  const video = {
    kind: 'youtube#video',
    id: 'vid1',
    snippet: { title: 'How to bake', channelTitle: 'Bakery', publishedAt: '2024-05-01T09:00:00Z' },
    statistics: { likeCount: '7' },
  }
  const files = [
    inputFile('a.json', page(comment('Ug3', { videoId: 'vid1', parentId: 'Ug1' }))),
    inputFile('b.json', page(video)),
  ]
  const { pieces, rejected } = await readAll(youtubeFormat, files)
  expect(pieces.map(({ externalId, fields }) => [externalId, fields.title])).toEqual([
    ['vid1', undefined],
    ['vid1', 'How to bake'],
  ])
  expect(pieces[1]?.fields).toMatchObject({ upVotes: 7, channelName: 'Bakery' })
  expect(rejected).toEqual([])
})

test('answers of comments.list belong to the video of their thread, whichever file comes first', async () => {
  const answer = comment('Ug1.9', {
    parentId: 'Ug1',
    textOriginal: 'Thanks',
    publishedAt: '2024-05-01T10:00:00Z',
  })
  const files = [
    inputFile('a.json', page(answer)),
    inputFile('b.json', page(thread(comment('Ug1')))),
  ]
  const found = await readAll(youtubeFormat, files)
  expect(
    found.quotes('vid1').map(({ externalId, replyingTo }) => [externalId, replyingTo]),
  ).toEqual([
    ['Ug1', undefined],
    ['Ug1.9', 'Ug1'],
  ])
  const alone = await readAll(youtubeFormat, files.slice(0, 1))
  expect(alone.rejected.map(({ reason }) => reason)).toEqual([
    'a comment without an `id` or `videoId`, whose thread is not in the input either',
  ])
})

test('the id of a video may stand behind its comments, and an author without a name is an id', async () => {
  const { id, comments, ...rest } = info
  const [one] = comments
  const sorted = { comments: [{ ...one, author: null, author_id: 'UC2' }], id, ...rest }
  const { pieces, rejected } = await readAll(youtubeFormat, [inputFile('v.info.json', sorted)])
  expect(rejected).toEqual([])
  expect(pieces[0]).toMatchObject({
    externalId: 'vid1',
    quotes: [{ externalId: 'Ug1', speaker: 'UC2' }],
  })
})

test('a comment of yt-dlp without an id is rejected with its video, and can be corrected alone', async () => {
  const [first] = info.comments
  const found = await readAll(youtubeFormat, [
    inputFile('v.info.json', { ...info, comments: [{ ...first, id: null }] }),
  ])
  const [record] = found.rejected.map((one) => one.record)
  const corrected = inputFile('a.json', { ...Object(record), id: 'Ug1' })
  expect(await recognises(youtubeFormat, corrected)).toBe(true)
  const { pieces } = await readAll(youtubeFormat, [corrected])
  expect(pieces[0]).toMatchObject({
    externalId: 'vid1',
    quotes: [{ externalId: 'Ug1', text: 'Nice', upVotes: 2 }],
  })
})

test('of two copies the one that was edited last comes last, and what is no comment is rejected', async () => {
  const edited = comment('Ug1', { textOriginal: 'new', updatedAt: '2024-06-01T09:30:00Z' })
  const found = await readAll(youtubeFormat, [
    inputFile('a.json', page(thread(edited), thread(comment('Ug1')), { id: 1 })),
  ])
  expect(found.quotes('vid1').map(({ text }) => text)).toEqual(['a < b\nhttps://a.example', 'new'])
  expect(found.rejected.map(({ reason }) => reason)).toEqual([
    'The record is neither a comment nor a video.',
  ])
})

test('reads the comments of an account as Takeout has them, whose texts are pieces in JSON', async () => {
  const header =
    'Comment ID,Channel ID,Comment Create Timestamp,Price,Parent Comment ID,Post ID,Video ID,Comment Text,Top-Level Comment ID'
  const row = (id: string, about: string, text: string) =>
    `${id},UC2,2024-05-01T09:30:00+00:00,0,${about},"${text.replaceAll('"', '""')}",`
  const rows = [
    row('Ug1', ',,vid1', '{"text":"Nice"}'),
    row(
      'Ug2',
      'Ug7,,vid2',
      '{"text":"Rye & "},{"text":"a.example","link":{"linkUrl":"https://a.example"}},{"text":"\\n"}',
    ),
    row('Ug3', ',,vid2', '{"takeoutSegments":[{"text":"Old "},{"text":"loaf"}]}'),
    row('Ug4', ',,vid2', '{"text": is no JSON'),
    row('Ug5', ',Ugkx1,', '{"text":"On a post"}'),
    row('', ',,vid2', '{"text":"Nobody"}'),
  ]
  const file = inputFile(
    'Takeout/YouTube and YouTube Music/comments/comments.csv',
    [header, ...rows].join('\n'),
  )
  expect(await filesByFormat([file])).toEqual({ youtube: [file.path] })
  const found = await readAll(youtubeFormat, [file])
  const quote = { speaker: 'UC2', createdAt: '2024-05-01T09:30:00.000Z' }
  expect(found.quotes('vid1')).toEqual([{ externalId: 'Ug1', text: 'Nice', ...quote }])
  expect(found.quotes('vid2')).toEqual([
    { externalId: 'Ug2', text: 'Rye & a.example\n', replyingTo: 'Ug7', ...quote },
    { externalId: 'Ug3', text: 'Old loaf', ...quote },
    { externalId: 'Ug4', text: '{"text": is no JSON', ...quote },
  ])
  expect(found.noted).toEqual({ 'skipped: comments on posts of channels': 1 })
  expect(found.rejected.map(({ place }) => place.line)).toEqual([7])
})
