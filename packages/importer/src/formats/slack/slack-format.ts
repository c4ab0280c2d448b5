// Reads a Slack export, which has a folder for each conversation, and a file for each day.
import { basename } from 'node:path/posix'
import type { Format, FormatOptions, Found, FoundLists, InputFile } from '../format.ts'
import { FormatError, rejectedFile } from '../format.ts'
import { fileBeside } from '../read/files-beside.ts'
import { foundIn, readJsonFile } from '../read/json-records.ts'
import { type Directory, folderOf, isList, isPart, readDirectory, usersIn } from './directory.ts'
import { type MessageContext, readMessage } from './slack-message.ts'

const DAY_FILE = /^(.*\/)?\d{4}-\d{2}-\d{2}\.json$/

/**
 * Reads exports of Slack itself and of slackdump. A thread may span files, because a reply is in
 * the file of its own day. Keeps all names and the largest message in memory. See
 * https://slack.com/help/articles/220556107-How-to-read-Slack-data-exports.
 */
export const slackFormat: Format = {
  name: 'slack',
  title: 'Slack',
  description: 'Slack export (zip or folder)',
  sourceIs: 'a thread, or a message without replies',
  howTo: 'as an owner or admin: Tools & settings, Workspace settings, Import/Export Data, Export',
  options: ['threadsOnly', 'workspace'],
  skipsOthers: true,
  // A single file does not show that it comes from Slack.
  recognises: () => false,
  owns,
  read,
  restore: (record, { channel, users }, path) => {
    const root = folderOf(path.slice(0, Math.max(0, path.lastIndexOf('/'))))
    return {
      [`${root}users.json`]: JSON.stringify(users ?? []),
      [`${root}channels.json`]: JSON.stringify(channel === undefined ? [] : [channel]),
      [path]: `[${record}]`,
    }
  },
}

/** The folders in which slackdump and others store what people sent. */
const UPLOADS = /^(__[^/]*|[^/]+\/attachments)\//

/** Matches lists below an export: of a workspace in an organisation, and of a channel. */
const BELOW = /^teams\/|^[^/]+\/canvas_in_the_conversation\.json$/

/** Returns the files that belong to an export: its lists, messages and uploads. */
function owns(
  files: readonly InputFile[],
  own: ReadonlySet<string>,
): (path: string, isRecognised: boolean) => boolean {
  const below = (root: string) => files.filter(({ path }) => path.startsWith(root))
  const roots = new Set(files.flatMap(({ path }) => (isList(path) ? folderOf(path) : [])))
  const exports = [...roots].filter((root) => isExport(below(root)) || hasMessages(below(root)))
  return (path, isRecognised) => {
    const root = exports.find((each) => path.startsWith(each))
    if (root === undefined) return false
    const within = path.slice(root.length)
    if (DAY_FILE.test(path) || UPLOADS.test(within)) return true
    // Other programs write lists of these names, too, into folders of their own.
    const isBeside = exports.includes(folderOf(path)) || BELOW.test(within)
    return isBeside && (isList(path) || (own.size > 0 && !isRecognised && isPart(path)))
  }
}

function hasMessages(files: readonly InputFile[]): boolean {
  return files.some(({ path }) => DAY_FILE.test(path))
}

/** These lists show an export even without messages. Other programs also write `users.json`. */
function isExport(files: readonly InputFile[]): boolean {
  const names = new Set(files.map(({ path }) => basename(path)))
  return names.has('users.json') && names.has('channels.json')
}

async function* read(files: readonly InputFile[], options: FormatOptions): FoundLists {
  if (!hasMessages(files))
    throw new FormatError(
      'This Slack export has no messages: the folders of its channels, with a file for each day, are missing.',
    )
  const { directory, found } = await readDirectory(files)
  yield found
  const later: ReadAgain[] = []
  for (const file of files) {
    if (DAY_FILE.test(file.path)) yield* readDay(file, directory, options, later)
    else if (!isList(file.path)) yield [fileBeside(file)]
  }
  while (later.length > 0) yield later.splice(0, READ_TOGETHER).flatMap((again) => again())
}

/**
 * At most this number of messages is kept until all names are known, about 20 MB. Further messages
 * name members by their ids.
 */
const MOST_LATER = 10_000
const READ_TOGETHER = 500
const BEYOND_LATER = `messages that name members by their ids, because more than ${MOST_LATER} messages wait for names`
const NO_FOLDER = 'The file lies in no folder of a channel: pass the whole export.'
/** Reads a message again that names a member whose name may only be in a later message. */
type ReadAgain = () => Found | Found[]

async function* readDay(
  file: InputFile,
  directory: Directory,
  options: FormatOptions,
  later: ReadAgain[],
): FoundLists {
  const folder = file.path.slice(0, Math.max(0, file.path.lastIndexOf('/')))
  if (!folder) return yield [rejectedFile(file, NO_FOLDER)]
  const listed = directory.conversations.get(folder)
  const reason = 'files of channels that no list names: the folder is their id'
  if (!listed) yield [{ kind: 'replaced', reason, place: { path: file.path } }]
  // No list names the folder. If it belongs to a direct message, its name is the id.
  const conversation = listed ?? { id: basename(folder), name: basename(folder) }
  const context: MessageContext = { directory, conversation, options, broadcasts: new Set() }
  yield* foundIn(
    // If a file is not a list, it is one record, which is rejected.
    readJsonFile(file, ['', '/*']),
    (record) => {
      const before = directory.unnamed
      const found = readMessage(record, context)
      if (directory.unnamed === before) return found
      const note: Found = { kind: 'replaced', reason: BEYOND_LATER, place: record.place }
      if (later.length === MOST_LATER) return [found, note].flat()
      later.push(() => readMessage(record, { ...context, broadcasts: new Set() }))
      return []
    },
    (record) => ({ channel: conversation, users: usersIn(record, directory) }),
  )
}
