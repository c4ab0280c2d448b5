// Reads the archive of an account of X (Twitter): its posts, as `data/tweets.js` and its parts have them.
import { basename } from 'node:path/posix'
import type { Format, Found, InputFile, Piece, Place, QuoteInput, SourceFields } from '../format.ts'
import { ownsFolder, rejected, skipped } from '../format.ts'
import { foundIn, type JsonRecord, readJson } from '../read/json-records.ts'
import { isoDateIn } from '../values/iso-date.ts'
import type { JsonObject } from '../values/record-fields.ts'
import { asList, asNumber, asObject, asObjects, asText, firstLine, present } from '../values/record-fields.ts'
import { noteOf, type Survey, surveyArchive, unfolded } from './survey.ts'

/** Posts in a community have a file of their own. */
const POSTS = /^(community-)?tweets?(-part\d+)?\.js$/

/**
 * Reads each conversation as a source: the first post that is known, and what the account answered. A file of the
 * archive is a script, `window.YTD.tweets.part0 = [ … ]`, whose list is JSON.
 */
export const xFormat: Format = {
  name: 'x',
  description: 'X (Twitter) archive: tweets.js and its parts (zip or folder)',
  owns: ownsFolder({ up: 1, others: /./ }),
  recognises: (file, beginning) =>
    isOfPosts(file) && /^window\.YTD\.(community_)?tweets?\./.test(beginning.toString('utf8')),
  async *read(files) {
    const survey = await surveyArchive(files, isOfPosts)
    yield survey.rejected
    for (const file of files)
      if (isOfPosts(file)) yield* readPosts(file, survey)
      else if (!survey.files.has(file.path))
        yield [skipped('files other than posts, such as media, messages and deleted posts', { path: file.path })]
    const unused = [...survey.notes.values()].flat().filter(({ isUsed }) => !isUsed)
    yield unused.map(() => skipped('long posts that belong to no post of the archive', { path: 'note-tweet.js' }))
  },
  restore: (record, { username }, path) => ({
    'account.js': `window.YTD.account.part0 = ${JSON.stringify([{ account: { username } }])}`,
    [POSTS.test(basename(path)) ? path : 'tweets.js']: `window.YTD.tweets.part0 = [${record}]`,
  }),
}

function isOfPosts({ path }: InputFile): boolean {
  return POSTS.test(basename(path))
}

function readPosts(file: InputFile, survey: Survey) {
  return foundIn(
    readJson(file, ['/*']),
    (record) => readPost(record, survey),
    () => ({ username: survey.username }),
  )
}

function readPost({ value, place }: JsonRecord, survey: Survey): Found | Found[] {
  const record = asObject(value)
  const post = asObject(record?.tweet) ?? record ?? {}
  const id = asText(post.id_str) ?? asText(post.id)
  const createdAt = isoDateIn(asText(post.created_at))
  if (id === undefined) return rejected('a post without an `id_str`', place, value)
  if (createdAt === undefined) return rejected('a post without a valid `created_at`', place, value)
  const raw = asText(post.full_text) ?? asText(post.text) ?? ''
  if (raw.startsWith('RT @')) return skipped('reposts of what others wrote', place)
  const media = asObjects((asObject(post.extended_entities) ?? asObject(post.entities))?.media)
  const text = noteOf(survey, raw, createdAt) ?? textOf(raw, post, media)
  const attachments = media.map(({ media_url_https }) => basename(asText(media_url_https) ?? 'media'))
  const upVotes = asNumber(post.favorite_count)
  const externalId = survey.originalOf(id)
  const answered = asText(post.in_reply_to_status_id_str)
  const replyingTo = answered && survey.originalOf(answered)
  const fields = { speaker: survey.username, replyingTo, upVotes, attachments }
  const quote = { externalId, text, createdAt, ...present(fields) }
  // Of the versions of a post, the last one comes last and so replaces the others.
  const order = [externalId, id].map((one) => one.padStart(20, '0')).join('/')
  return toPiece(quote, externalId, order, survey, place)
}

function toPiece(quote: QuoteInput, id: string, order: string, survey: Survey, place: Place): Piece {
  const root = survey.rootOf(id)
  const fields = { placeholderTitle: `Conversation ${root}`, ...(root === id && fieldsOfRoot(quote, id, survey)) }
  return { kind: 'piece', service: 'x', externalId: root, order, fields, quotes: [quote], place }
}

function fieldsOfRoot({ text, createdAt }: QuoteInput, id: string, { username }: Survey): SourceFields {
  const url = `https://x.com/${username ?? 'i/web'}/status/${id}`
  return { url, ...present({ title: firstLine(text), createdAt: createdAt ?? undefined }) }
}

/** Unfolds the links that X shortened, and leaves out those that stand for media. */
function textOf(raw: string, post: JsonObject, media: readonly JsonObject[]): string {
  const links = media.map(({ url }) => [asText(url) ?? '', ''])
  const urls = asList(asObject(post.entities)?.urls).map((link) => {
    const { url, expanded_url } = asObject(link) ?? {}
    return [asText(url) ?? '', asText(expanded_url) ?? asText(url) ?? '']
  })
  return unfolded(raw, new Map([...links, ...urls].map(([from = '', to = '']) => [from, to]))).trim()
}
