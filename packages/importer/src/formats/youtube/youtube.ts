// Reads comments on YouTube videos, from the .info.json of yt-dlp, pages of the Data API, and
// comments.csv of Google Takeout.
import type { Format, Found, FoundLists, InputFile, Place } from '../format.ts'
import { eachFile, ownsFolder, piecesOf, rejected, skipped } from '../format.ts'
import { type CsvRow, foundInRows } from '../read/csv-rows.ts'
import { fileBeside } from '../read/files-beside.ts'
import { type JsonShape, jsonShape } from '../read/json-beginning.ts'
import { fieldsBehind, foundIn, readJsonFile, recordsAndLists } from '../read/json-records.ts'
import { readBeginning } from '../read/utf8-chunks.ts'
import { htmlToText } from '../values/html-text.ts'
import { asIsoDate, isoDateOf } from '../values/iso-date.ts'
import {
  asId,
  asNumber,
  asObject,
  asObjects,
  asText,
  type JsonObject,
  present,
} from '../values/record-fields.ts'
import { commentOfTakeout, isOfTakeout } from './takeout-comments.ts'

const piece = piecesOf('youtube', (id) => ({
  placeholderTitle: `Video ${id}`,
  url: `https://www.youtube.com/watch?v=${id}`,
}))
const OF_VIDEO =
  'id title description channel channel_id uploader timestamp upload_date like_count extractor'.split(
    ' ',
  )
/** yt-dlp writes the same file for all sites. */
const OTHER_SITE = 'videos of other sites, and their comments'
/** Matches what yt-dlp writes beside a video's .info.json, and the video itself. */
const OF_VIDEOS =
  /\.(description|annotations\.xml|live_chat\.json|vtt|srt|ass|lrc|ttml|srv\d|json3|part|ytdl|mp4|mkv|webm|m4a|webp)$/
const OF_PAGES = ['', '[].', 'items[].', '[].items[].']

/** About 100 MB of threads. Answers to further threads are rejected. */
const MOST_THREADS = 1_000_000

/** Reads each video as a source, its comments as quotes, with one comment or page in memory. */
export const youtubeFormat: Format = {
  name: 'youtube',
  title: 'YouTube',
  description:
    'YouTube: .info.json of yt-dlp, commentThreads of the Data API, comments.csv of Takeout',
  sourceIs: 'a video',
  owns: ownsFolder({ parts: OF_VIDEOS }),
  skipsOthers: true,
  recognises: (_, beginning) => isOfTakeout(beginning) || isOfJson(jsonShape(beginning)),
  async *read(files, options) {
    // The videos of threads, by the ids of the threads, because an answer of comments.list names
    // its thread but not the video.
    const videos = new Map<string, string>()
    const hasInfo = files.some(({ path }) => path.endsWith('.info.json'))
    const threads: InputFile[] = []
    for (const file of files) {
      const { members } = jsonShape(await readBeginning(file))
      if (hasMember(members, 'snippet.topLevelComment')) threads.push(file)
    }
    const read = eachFile(async function* (file) {
      const beginning = await readBeginning(file)
      const { root, members } = jsonShape(beginning)
      // A page may have only videos. In a folder of yt-dlp, the live chat of a video is JSON, too.
      const isPage = hasInfo ? isOfApi(members) : root === '{' || root === '['
      if (isOfTakeout(beginning)) yield* foundInRows(file, readOfTakeout)
      else if (isOfYtDlp(members)) yield* readInfo(file)
      else if (!isPage) yield [fileBeside(file, 'descriptions, subtitles and live chats of videos')]
      else
        yield* foundIn(readJsonFile(file, recordsAndLists('items')), ({ value, place }) =>
          readPage(value, videos, place),
        )
    })
    yield* read([...new Set([...threads, ...files])], options)
  },
}

function isOfJson({ members }: JsonShape): boolean {
  return isOfYtDlp(members) || isOfApi(members)
}

/** The video's list of formats comes early, and may fill the whole beginning. */
function isOfYtDlp(members: ReadonlySet<string>): boolean {
  const isOfVideo = ['formats[].format_id', 'comments[].parent', 'webpage_url'].some((name) =>
    members.has(name),
  )
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
  const paths = ['/comments/*', ...OF_VIDEO.map((name) => `/${name}`)]
  yield* foundIn(readJsonFile(file, paths), ({ path, value, place }) => {
    if (path === '/comments/*')
      return isOfOtherSite(video)
        ? skipped(OTHER_SITE, place)
        : readComment(asApiComment(asObject(value) ?? {}, video.id), undefined, place)
    video[path.slice(1)] = value
    return []
  })
  const place = { path: file.path }
  yield [isOfOtherSite(video) ? skipped(OTHER_SITE, place) : readVideo(asApiVideo(video), place)]
}

function isOfOtherSite({ extractor }: JsonObject): boolean {
  return asText(extractor)?.startsWith('youtube') === false
}

/** Converts a video of yt-dlp to the form in which the API writes it. */
function asApiVideo({ id, like_count, ...video }: JsonObject): JsonObject {
  const day = asText(video.upload_date)?.replace(/^(\d{4})(\d\d)(\d\d)$/, '$1-$2-$3')
  const channel = {
    channelId: video.channel_id,
    channelTitle: asText(video.channel) ?? video.uploader,
  }
  const publishedAt = isoDateOf(asNumber(video.timestamp)) ?? day
  return {
    id,
    snippet: { ...video, ...channel, publishedAt },
    statistics: { likeCount: like_count },
  }
}

/** A rejected comment can then be corrected and imported separately. */
function asApiComment({ id, parent, ...comment }: JsonObject, videoId: unknown): JsonObject {
  const snippet = {
    videoId,
    textDisplay: comment.text,
    textOriginal: comment.text,
    authorDisplayName: asText(comment.author) ?? comment.author_id,
    publishedAt: isoDateOf(asNumber(comment.timestamp)),
    parentId: parent === 'root' ? undefined : parent,
    likeCount: comment.like_count,
  }
  return { id, snippet }
}

function readOfTakeout(row: CsvRow): Found {
  const comment = commentOfTakeout(row)
  if (comment === undefined) return skipped('comments on posts of channels', row.place)
  return readComment(comment, undefined, row.place)
}

function readPage(value: unknown, videos: Map<string, string>, place: Place): Found[] {
  const record = asObject(value) ?? {}
  if (Array.isArray(record.items))
    return record.items.flatMap((item) => readPage(item, videos, place))
  const snippet = asObject(record.snippet)
  if (snippet === undefined)
    return [rejected('The record is neither a comment nor a video.', place, value)]
  if (snippet.textDisplay !== undefined)
    return [readComment(record, videos.get(asId(snippet.parentId) ?? ''), place)]
  const top = asObject(snippet.topLevelComment)
  if (top === undefined) return [readVideo(record, place)]
  const answers = asObjects(asObject(record.replies)?.comments)
  const video = asId(snippet.videoId) ?? asId(snippet.channelId)
  const topId = asId(top.id)
  if (video !== undefined && topId !== undefined && videos.size < MOST_THREADS)
    videos.set(topId, video)
  const isPart = (asNumber(snippet.totalReplyCount) ?? 0) > answers.length
  const missing = isPart
    ? [skipped('threads whose replies are not all in the file (see comments.list)', place)]
    : []
  return [...[top, ...answers].map((comment) => readComment(comment, video, place)), ...missing]
}

function readVideo(video: JsonObject, place: Place): Found {
  const snippet = asObject(video.snippet) ?? {}
  const externalId = asId(video.id)
  const title = asText(snippet.title)
  if (externalId === undefined || title === undefined)
    return skipped('records other than comments and videos', place)
  const fields = {
    title,
    description: asText(snippet.description),
    channelName: asText(snippet.channelTitle),
    channelId: asText(snippet.channelId),
    createdAt: asIsoDate(snippet.publishedAt),
    upVotes: asNumber(asObject(video.statistics)?.likeCount),
  }
  return piece(externalId, '', present(fields), [], place)
}

const UNKNOWN_VIDEO =
  'a comment without an `id` or `videoId`, whose thread is not in the input either'

/**
 * Reads a comment. The API writes HTML, unless it is asked for plain text. It returns the original
 * text only to the comment's author.
 */
function readComment(comment: JsonObject, thread: string | undefined, place: Place): Found {
  const snippet = asObject(comment.snippet) ?? {}
  const externalId = asId(comment.id)
  const video = asId(snippet.videoId) ?? thread
  if (externalId === undefined || video === undefined)
    return rejected(UNKNOWN_VIDEO, place, comment)
  const text = asText(snippet.textOriginal) ?? htmlToText(asText(snippet.textDisplay) ?? '')
  if (text === '') return skipped('comments without text', place)
  const fields = {
    speaker: asText(snippet.authorDisplayName),
    createdAt: asIsoDate(snippet.publishedAt),
    replyingTo: asId(snippet.parentId),
    upVotes: asNumber(snippet.likeCount),
  }
  const order = `${fields.createdAt ?? '~'}/${externalId}/${asText(snippet.updatedAt) ?? ''}`
  return piece(video, order, {}, [{ externalId, text, ...present(fields) }], place)
}
