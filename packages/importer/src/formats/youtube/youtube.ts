// Comments on videos of YouTube: the .info.json of yt-dlp, and pages of the Data API.
import { parseIsoDate } from '@sluice/contract'
import type { Format, Found, FoundLists, InputFile, Piece, Place, QuoteInput, SourceFields } from '../format.ts'
import { eachFile, ownsFolder, rejected, skipped } from '../format.ts'
import { byShape, jsonShape } from '../read/json-beginning.ts'
import { fieldsBehind, foundIn, type JsonRecord, readJson, recordsAndLists } from '../read/json-records.ts'
import { readBeginning } from '../read/utf8-chunks.ts'
import { htmlToText } from '../values/html-text.ts'
import { isoDateOf } from '../values/iso-date.ts'
import { asId, asNumber, asObject, asObjects, asText, type JsonObject, present } from '../values/record-fields.ts'

const OF_VIDEO = 'id title description channel channel_id uploader timestamp upload_date like_count'.split(' ')
const OF_PAGES = ['', '[].', 'items[].', '[].items[].']
const RECORDS = recordsAndLists('items')

/** Reads each video as a source, and its comments as quotes. Memory: the largest comment, or page. */
export const youtubeFormat: Format = {
  name: 'youtube',
  description: 'YouTube comments: .info.json of yt-dlp, or commentThreads of the Data API',
  // Beside the .info.json of a video lie the video, its thumbnails and subtitles.
  owns: ownsFolder({ others: /./ }),
  recognises: byShape(({ members }) => isOfYtDlp(members) || isOfApi(members)),
  async *read(files, options) {
    const videos: Videos = new Map()
    const hasInfo = files.some(isInfo)
    const threads: InputFile[] = []
    const others: InputFile[] = []
    for (const file of files) {
      const { members } = jsonShape(await readBeginning(file))
      ;(hasMember(members, 'snippet.topLevelComment') ? threads : others).push(file)
    }
    const read = eachFile(async function* (file) {
      const { root, members } = jsonShape(await readBeginning(file))
      // A page may have videos alone. Beside a video of yt-dlp, its live chat is JSON, too.
      const isPage = hasInfo ? isOfApi(members) : root === '{' || root === '['
      if (isOfYtDlp(members)) yield* readInfo(file)
      else if (!isPage) yield [skipped('files other than comments, such as videos and live chats', { path: file.path })]
      else yield* foundIn(readJson(file, RECORDS), ({ value, place }) => readPage(value, videos, place))
    })
    yield* read([...threads, ...others], options)
  },
}

/**
 * The videos of threads, by the ids of the threads. An answer of comments.list names its thread and no video, so pages
 * of threads are read first.
 */
type Videos = Map<string, string>

/** At most this number of threads is kept, some 100 MB. Answers to threads beyond it are rejected. */
const MOST_THREADS = 1_000_000

function isInfo({ path }: InputFile): boolean {
  return path.endsWith('.info.json')
}

/** The list of formats comes early in the file, and may be all that its beginning has. */
function isOfYtDlp(members: ReadonlySet<string>): boolean {
  const isOfVideo = ['formats[].format_id', 'comments[].parent', 'webpage_url'].some((name) => members.has(name))
  return isOfVideo && members.has('id') && members.has('title')
}

function isOfApi(members: ReadonlySet<string>): boolean {
  return hasMember(members, 'snippet.topLevelComment') || hasMember(members, 'snippet.textDisplay')
}

function hasMember(members: ReadonlySet<string>, name: string): boolean {
  return OF_PAGES.some((at) => members.has(`${at}${name}`))
}

async function* readInfo(file: InputFile): FoundLists {
  const video: Record<string, unknown> = await fieldsBehind(file, 'comments', ['id'])
  const toFound = ({ path, value, place }: JsonRecord): Found | Found[] => {
    if (path === '/comments/*') return readYtDlpComment(asObject(value) ?? {}, asId(video.id), value, place)
    video[path.slice(1)] = value
    return []
  }
  yield* foundIn(readJson(file, ['/comments/*', ...OF_VIDEO.map((name) => `/${name}`)]), toFound)
  const id = asId(video.id)
  const place = { path: file.path }
  yield [
    id === undefined ? rejected('The file names no video.', place, '') : piece(id, '', fieldsOfInfo(video), [], place),
  ]
}

function fieldsOfInfo(video: JsonObject): SourceFields {
  const day = asText(video.upload_date)?.replace(/^(\d{4})(\d\d)(\d\d)$/, '$1-$2-$3')
  return present({
    title: asText(video.title),
    description: asText(video.description),
    channelName: asText(video.channel) ?? asText(video.uploader),
    channelId: asText(video.channel_id),
    createdAt: isoDateOf(asNumber(video.timestamp)) ?? parseIsoDate(day ?? ''),
    upVotes: asNumber(video.like_count),
  })
}

function readYtDlpComment(comment: JsonObject, video: string | undefined, value: unknown, place: Place): Found {
  const externalId = asId(comment.id)
  const text = asText(comment.text)
  if (video === undefined || externalId === undefined) return rejected('a comment without an id', place, value)
  if (text === undefined) return skipped('comments without text', place)
  const parent = asId(comment.parent)
  const createdAt = isoDateOf(asNumber(comment.timestamp))
  const replyingTo = parent === 'root' ? undefined : parent
  const upVotes = asNumber(comment.like_count)
  const speaker = asText(comment.author) ?? asText(comment.author_id)
  const quote = { externalId, text, ...present({ speaker, createdAt, replyingTo, upVotes }) }
  return piece(video, `${createdAt ?? '~'}/${externalId}`, {}, [quote], place)
}

function readPage(value: unknown, videos: Videos, place: Place): Found[] {
  const { items, snippet, id, replies } = asObject(value) ?? {}
  if (Array.isArray(items)) return items.flatMap((item) => readPage(item, videos, place))
  const fields = asObject(snippet)
  if (fields === undefined) return [rejected('The record is neither a comment nor a video.', place, value)]
  if (fields.textDisplay !== undefined)
    return [readComment(asObject(value) ?? {}, videos.get(asId(fields.parentId) ?? ''), place)]
  const top = asObject(fields.topLevelComment)
  if (top === undefined) return [readVideo(id, fields, asObject(value) ?? {}, place)]
  const answers = asObjects(asObject(replies)?.comments)
  const video = asId(fields.videoId) ?? asId(fields.channelId)
  const topId = asId(top.id)
  if (video !== undefined && topId !== undefined && videos.size < MOST_THREADS) videos.set(topId, video)
  const isPart = (asNumber(fields.totalReplyCount) ?? 0) > answers.length
  const missing = isPart ? [skipped('threads whose replies are not all in the file (see comments.list)', place)] : []
  return [...[top, ...answers].map((comment) => readComment(comment, video, place)), ...missing]
}

function readVideo(id: unknown, snippet: JsonObject, video: JsonObject, place: Place): Found {
  const externalId = asId(id)
  if (externalId === undefined || asText(snippet.title) === undefined)
    return skipped('records other than comments and videos', place)
  const fields = {
    title: asText(snippet.title),
    description: asText(snippet.description),
    channelName: asText(snippet.channelTitle),
    channelId: asText(snippet.channelId),
    createdAt: parseIsoDate(asText(snippet.publishedAt) ?? ''),
    upVotes: asNumber(asObject(video.statistics)?.likeCount),
  }
  return piece(externalId, '', present(fields), [], place)
}

/** The API writes HTML, unless it is asked for plain text. Only the author's own comments have their original text. */
function readComment(comment: JsonObject, thread: string | undefined, place: Place): Found {
  const snippet = asObject(comment.snippet) ?? {}
  const externalId = asId(comment.id)
  const video = asId(snippet.videoId) ?? thread
  if (externalId === undefined || video === undefined)
    return rejected('a comment without an `id` or `videoId`, whose thread is not in the input either', place, comment)
  const text = asText(snippet.textOriginal) ?? htmlToText(asText(snippet.textDisplay) ?? '')
  if (text === '') return skipped('comments without text', place)
  const createdAt = parseIsoDate(asText(snippet.publishedAt) ?? '')
  const fields = {
    speaker: asText(snippet.authorDisplayName),
    createdAt,
    replyingTo: asId(snippet.parentId),
    upVotes: asNumber(snippet.likeCount),
  }
  const order = `${createdAt ?? '~'}/${externalId}/${asText(snippet.updatedAt) ?? ''}`
  return piece(video, order, {}, [{ externalId, text, ...present(fields) }], place)
}

function piece(externalId: string, order: string, fields: SourceFields, quotes: QuoteInput[], place: Place): Piece {
  const url = `https://www.youtube.com/watch?v=${externalId}`
  const all = { placeholderTitle: `Video ${externalId}`, url, ...fields }
  return { kind: 'piece', service: 'youtube', externalId, order, fields: all, quotes, place }
}
