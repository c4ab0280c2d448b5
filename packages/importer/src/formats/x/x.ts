// Reads the archive of an account on X (Twitter): its posts, from `data/tweets.js` and its further
// parts.
import { basename } from 'node:path/posix'
import {
  type Format,
  type Found,
  type InputFile,
  ownsFolder,
  piecesOf,
  type Rejected,
  rejected,
  skipped,
} from '../format.ts'
import { fileBeside } from '../read/files-beside.ts'
import { foundIn, type JsonRecord, readJsonFile } from '../read/json-records.ts'
import { isoDateIn } from '../values/iso-date.ts'
import {
  asNumber,
  asObject,
  asObjects,
  asText,
  asTexts,
  firstLine,
  type JsonObject,
  present,
} from '../values/record-fields.ts'
import { withoutEntities } from '../values/typography.ts'

const piece = piecesOf('x')
/** Matches files of posts. Posts in a community or for a circle have separate files. */
const POSTS = /(^|\/)((community|twitter-circle)-)?tweets?(-part\d+)?\.js$/
/**
 * Matches the files that are read: posts, notes (the whole texts of long posts), and the account.
 */
const READ = /(^|\/)((((community|twitter-circle)-)?tweets?|note-tweet)(-part\d+)?|account)\.js$/

/** Scripts say that they are X's, and other files are media. */
const PAGE = /^Your archive\.html$/
const BEGINNING = 20

/** About 100 MB of answers and versions. Further answers are separate sources. */
const MOST_ANSWERS = 1_000_000
/** A note belongs to the post of the same moment that begins with the same words. */
const COMPARED_CHARACTERS = 80
const SAME_MOMENT_MS = 60_000

/**
 * Reads each conversation as a source: the first known post, and the account's answers to it. A
 * file of the archive is a script, `window.YTD.tweets.part0 = [ … ]`, which contains a list in
 * JSON.
 */
export const xFormat: Format = {
  name: 'x',
  title: 'X (Twitter)',
  description: 'X (Twitter) archive with tweets.js (zip or folder)',
  sourceIs: 'a conversation: its topmost known post, and what the account answered',
  owns: ownsFolder({ within: /(?<![^/])(data\/)?[^/]*$/, parts: PAGE }),
  howTo: 'Settings, Your account, Download an archive of your data',
  wrote: (beginning) =>
    /^window\.(YTD\.|__THAR_CONFIG)/.test(beginning.toString('latin1', 0, BEGINNING)),
  skipsOthers: true,
  recognises: ({ path }, beginning) =>
    POSTS.test(path) &&
    /^window\.YTD\.((community|twitter_circle)_)?tweets?\./.test(beginning.toString('utf8')),
  async *read(files) {
    const survey = await surveyArchive(files.filter(({ path }) => READ.test(path)))
    const context = () => ({ username: survey.username })
    yield survey.rejected
    for (const file of files)
      if (POSTS.test(file.path))
        yield* foundIn(readJsonFile(file, ['/*']), (record) => readPost(record, survey), context)
      else if (!READ.test(file.path))
        yield [fileBeside(file, 'messages, deleted posts, likes and so on of X')]
    const unused = [...survey.notes.values()].flat().filter(({ isUsed }) => !isUsed)
    yield unused.map(() =>
      skipped('long posts that belong to no post of the archive', { path: 'note-tweet.js' }),
    )
  },
  restore: (record, { username }, path) => ({
    'account.js': `window.YTD.account.part0 = ${JSON.stringify([{ account: { username } }])}`,
    [POSTS.test(path) ? path : 'tweets.js']: `window.YTD.tweets.part0 = [${record}]`,
  }),
}

/** A long post's whole text, in `note-tweet.js`, which does not name the post. */
interface Note {
  text: string
  at: number
  isUsed: boolean
}

type Survey = Awaited<ReturnType<typeof surveyArchive>>

async function surveyArchive(files: readonly InputFile[]) {
  /** By id: which post a post answers, and the first version of an edited post. */
  const answered = new Map<string, string>()
  const originals = new Map<string, string>()
  const notes = new Map<string, Note[]>()
  const rejected: Rejected[] = []
  let username: string | undefined
  for (const file of files)
    for await (const records of readJsonFile(file, ['/*']))
      for (const record of records) {
        // Posts are read a second time, and then rejected.
        if (record.kind === 'rejected' && !POSTS.test(file.path)) rejected.push(record)
        const value = (record.kind === 'record' && asObject(record.value)) || {}
        username ??= asText(asObject(value.account)?.username)
        addNote(asObject(value.noteTweet), notes)
        if (answered.size + originals.size <= MOST_ANSWERS)
          addPost(postIn(value), answered, originals)
      }
  const originalOf = (id: string) => originals.get(id) ?? id
  /** Returns the topmost known post of the conversation. */
  function rootOf(id: string): string {
    const passed = new Set([id])
    // The loop also visits the posts that it adds. A set has each post only once, so a cycle ends.
    for (const one of passed) passed.add(originalOf(answered.get(one) ?? one))
    return [...passed].at(-1) ?? id
  }
  return { username, notes, rejected, originalOf, rootOf }
}

function postIn(value: JsonObject): JsonObject {
  return asObject(value.tweet) ?? asObject(value.twitterCircleTweet) ?? value
}

function addPost(
  post: JsonObject,
  answered: Map<string, string>,
  originals: Map<string, string>,
): void {
  const id = asText(post.id_str)
  const parent = asText(post.in_reply_to_status_id_str)
  const { initial, edit } = asObject(post.edit_info) ?? {}
  const versions = asObject(initial) ?? asObject(asObject(edit)?.editControlInitial)
  const [original = id, ...later] = asTexts(versions?.editTweetIds)
  if (original === undefined) return
  for (const version of later) originals.set(version, original)
  if (parent !== undefined) answered.set(original, parent)
}

function addNote(note: JsonObject | undefined, notes: Map<string, Note[]>): void {
  const { text: raw, urls } = asObject(note?.core) ?? {}
  if (typeof raw !== 'string') return
  const at = Date.parse(isoDateIn(asText(note?.createdAt)) ?? '')
  const alike = notes.get(beginningOf(raw)) ?? []
  notes.set(beginningOf(raw), [
    ...alike,
    { text: unfolded(raw, asObjects(urls)), at, isUsed: false },
  ])
}

/** `tweets.js` cuts long posts. The note of the moment with the same beginning has the whole. */
function noteOf({ notes }: Survey, raw: string, createdAt: string): string | undefined {
  const note = notes
    .get(beginningOf(raw))
    ?.find(({ at }) => Math.abs(at - Date.parse(createdAt)) < SAME_MOMENT_MS)
  if (note !== undefined) note.isUsed = true
  return note?.text
}

/** A post first names the people whom it answers, and a note may leave these names out. */
function beginningOf(text: string): string {
  const own = unfolded(text, []).replace(/^(@\w+\s+)+/, '')
  return own.slice(0, COMPARED_CHARACTERS)
}

/** Replaces links by their targets. */
function unfolded(text: string, links: readonly JsonObject[]): string {
  const targets = new Map(
    links.map((one) => [one.url ?? one.shortUrl, one.expanded_url ?? one.expandedUrl]),
  )
  return withoutEntities(text).replace(/https?:\/\/t\.co\/\w+/g, (link) =>
    String(targets.get(link) ?? link),
  )
}

function readPost({ value, place }: JsonRecord, survey: Survey): Found {
  const post = postIn(asObject(value) ?? {})
  const id = asText(post.id_str)
  const createdAt = isoDateIn(asText(post.created_at))
  if (id === undefined) return rejected('a post without an `id_str`', place, value)
  if (createdAt === undefined) return rejected('a post without a valid `created_at`', place, value)
  const raw = asText(post.full_text) ?? asText(post.text) ?? ''
  if (raw.startsWith('RT @')) return skipped('reposts of what others wrote', place)
  const entities = asObject(post.entities)
  const media = asObjects((asObject(post.extended_entities) ?? entities)?.media)
  // Leave out links to the post's own media.
  const links = [
    ...media.map(({ url }) => ({ url, expanded_url: '' })),
    ...asObjects(entities?.urls),
  ]
  const text = noteOf(survey, raw, createdAt) ?? unfolded(raw, links).trim()
  const attachments = media.map(({ media_url_https }) =>
    basename(asText(media_url_https) ?? 'media'),
  )
  const { username, originalOf, rootOf } = survey
  const answered = asText(post.in_reply_to_status_id_str)
  const replyingTo = answered && originalOf(answered)
  const upVotes = asNumber(post.favorite_count)
  const optional = present({ speaker: username, replyingTo, upVotes, attachments })
  const externalId = originalOf(id)
  const root = rootOf(externalId)
  const url = `https://x.com/${username ?? 'i/web'}/status/${externalId}`
  const ofRoot = root === externalId ? present({ title: firstLine(text), url, createdAt }) : {}
  const fields = { placeholderTitle: `Conversation ${root}`, ...ofRoot }
  // The last version of a post comes last, and so replaces the others.
  const order = [externalId, id].map((one) => one.padStart(20, '0')).join('/')
  const quotes = [{ externalId, text, createdAt, ...optional }]
  return piece(root, order, fields, quotes, place)
}
