// What the posts of an archive need from its other files, and from all other posts.
import { basename } from 'node:path/posix'
import type { InputFile, Rejected } from '../format.ts'
import { readJson } from '../read/json-records.ts'
import { isoDateIn } from '../values/iso-date.ts'
import { asList, asObject, asObjects, asText, type JsonObject } from '../values/record-fields.ts'

/** A post of more characters than X shows at once stands whole in `note-tweet.js`, which names no post. */
interface Note {
  text: string
  at: number
  isUsed: boolean
}

const NOTES = /^note-tweet(-part\d+)?\.js$/
/** At most this number of answers and versions is kept, some 100 MB. Answers beyond it are sources of their own. */
const MOST_ANSWERS = 1_000_000
/** A note belongs to the post that begins alike. */
const COMPARED_CHARACTERS = 80
const SAME_MOMENT_MS = 60_000

export type Survey = Awaited<ReturnType<typeof surveyArchive>>

/** Reads all files of an archive that matter for other files. */
export async function surveyArchive(files: readonly InputFile[], isOfPosts: (file: InputFile) => boolean) {
  /** What a post answers, and the first version of a post that was edited, by their ids. */
  const answered = new Map<string, string>()
  const originals = new Map<string, string>()
  const notes = new Map<string, Note[]>()
  const read = new Set<string>()
  const rejected: Rejected[] = []
  let username: string | undefined
  await forEach(files.filter(isOfPosts), (record) => addPost(asObject(record.tweet) ?? record, answered, originals))
  for (const file of files.filter(({ path }) => NOTES.test(basename(path)) || basename(path) === 'account.js')) {
    read.add(file.path)
    const faults = await forEach([file], (record) => {
      username ??= asText(asObject(record.account)?.username)
      const note = asObject(record.noteTweet)
      if (note !== undefined) addNote(note, notes)
    })
    rejected.push(...faults)
  }
  const originalOf = (id: string) => originals.get(id) ?? id
  /** Returns the topmost post that is known to belong to the conversation. */
  function rootOf(id: string): string {
    const passed = new Set<string>()
    let root = id
    for (let next = answered.get(id); next !== undefined && !passed.has(root); next = answered.get(root)) {
      passed.add(root)
      root = originalOf(next)
    }
    return root
  }
  return { username, notes, originalOf, rootOf, files: read, rejected }
}

/** Returns what can't be read. */
async function forEach(files: readonly InputFile[], visit: (record: JsonObject) => void): Promise<Rejected[]> {
  const rejected: Rejected[] = []
  for (const file of files)
    for await (const records of readJson(file, ['/*']))
      for (const record of records)
        if (record.kind === 'record') visit(asObject(record.value) ?? {})
        else rejected.push(record)
  return rejected
}

function addPost(post: JsonObject, answered: Map<string, string>, originals: Map<string, string>): void {
  const id = asText(post.id_str) ?? asText(post.id)
  const parent = asText(post.in_reply_to_status_id_str)
  if (id === undefined || answered.size + originals.size > MOST_ANSWERS) return
  const { initial, edit } = asObject(post.edit_info) ?? {}
  const versions = asObject(initial) ?? asObject(asObject(edit)?.editControlInitial)
  const [original, ...later] = asList(versions?.editTweetIds).flatMap((one) => asText(one) ?? [])
  for (const version of later) if (original !== undefined) originals.set(version, original)
  if (parent !== undefined) answered.set(original ?? id, parent)
}

function addNote(note: JsonObject, notes: Map<string, Note[]>): void {
  const core = asObject(note.core) ?? {}
  const at = Date.parse(isoDateIn(asText(note.createdAt)) ?? '')
  const urls = asObjects(core.urls).map(({ shortUrl, expandedUrl }) => [
    asText(shortUrl) ?? '',
    asText(expandedUrl) ?? '',
  ])
  const raw = asText(core.text) ?? ''
  const text = unfolded(raw, new Map(urls.map(([from = '', to = '']) => [from, to])))
  notes.set(beginningOf(raw), [...(notes.get(beginningOf(raw)) ?? []), { text, at, isUsed: false }])
}

/** Returns the whole text of a post that `tweets.js` cuts: the note that begins alike, of the same moment. */
export function noteOf({ notes }: Survey, raw: string, createdAt: string): string | undefined {
  if (raw.length <= COMPARED_CHARACTERS || notes.size === 0) return undefined
  const same = notes.get(beginningOf(raw)) ?? []
  const note = same.find(({ at }) => Math.abs(at - Date.parse(createdAt)) < SAME_MOMENT_MS)
  if (note !== undefined) note.isUsed = true
  return note?.text
}

/** A post names first whom it answers. A note may leave these names out. */
function beginningOf(text: string): string {
  const own = unfolded(text, new Map()).replace(/^(@\w+\s+)+/, '')
  return own.slice(0, COMPARED_CHARACTERS)
}

/** Replaces links by what they stand for, and the entities that X writes for `<`, `>` and `&`. */
export function unfolded(text: string, links: ReadonlyMap<string, string>): string {
  const plain = text.replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&amp;', '&')
  return plain.replace(/https?:\/\/t\.co\/\w+/g, (link) => links.get(link) ?? link)
}
