// The names in an export: members by their ids, and conversations by the folders of their messages.
import { basename } from 'node:path/posix'
import { type Found, type InputFile, skipped } from '../format.ts'
import { foundIn, readJsonFile } from '../read/json-records.ts'
import { asArray, asId, asObject, asText, type JsonObject } from '../values/record-fields.ts'
import { asName } from '../values/typography.ts'

/** A channel, a private channel, a group of direct messages, or a direct message. */
export interface SlackConversation {
  id: string
  name: string
}

export interface Directory {
  users: Map<string, string>
  /** Conversations by their ids and, if a list names them, by the folders of their messages. */
  conversations: Map<string, SlackConversation>
  /** The names of apps and custom integrations, by the second in which they were installed. */
  added: Map<string, string>
  /** The number of times that a member was mentioned before the member's name was known. */
  unnamed: number
}

/** About 150 bytes each. Further members are named by their ids. */
const MAX_NAMES = 1_000_000

/** The lists are read in this order, because direct messages are named after their members. */
const LISTS = [
  { names: ['users.json', 'org_users.json'], add: addUser },
  // The log of installed apps. It has the names of bots whose messages have none.
  { names: ['integration_logs.json'], add: addApp },
  { names: ['channels.json', 'groups.json', 'dms.json', 'mpims.json'], add: addConversation },
]

/** Matches the lists that are not read. Canvases and huddles contain no messages. */
const OTHERS =
  /(^|\/)(canvases|canvas_in_the_conversation|lists|huddle_transcripts|file_conversations|user_?groups|workflows|emoji|teams|team)\.json$/

/** Returns whether Slack or slackdump writes a list with this name. */
export function isPart(path: string): boolean {
  return isList(path) || OTHERS.test(path)
}

/** Returns whether the file names members, conversations or apps. */
export function isList(path: string): boolean {
  return LISTS.some(({ names }) => names.includes(basename(path)))
}

/** An organisation's export has some of the lists for each workspace. */
export async function readDirectory(
  files: readonly InputFile[],
): Promise<{ directory: Directory; found: Found[] }> {
  const directory: Directory = {
    users: new Map(),
    conversations: new Map(),
    added: new Map(),
    unnamed: 0,
  }
  const found: Found[] = []
  const reason = 'members and channels without an id or beyond the bound'
  for (const { names, add } of LISTS)
    for (const file of files.filter(({ path }) => names.includes(basename(path)))) {
      const entries = foundIn(readJsonFile(file, ['', '/*']), ({ value, place }) =>
        add(directory, asObject(value) ?? {}, folderOf(file.path)) ? [] : skipped(reason, place),
      )
      for await (const list of entries) found.push(...list)
    }
  return { directory, found }
}

function addUser({ users }: Directory, user: JsonObject): boolean {
  const id = asId(user.id)
  const name = userNameOf(user)
  if (!id || users.size >= MAX_NAMES) return false
  if (name) users.set(id, name)
  return true
}

function addApp({ users, added }: Directory, entry: JsonObject): boolean {
  const id = asId(entry.app_id)
  const name = asText(entry.app_type) ?? asText(entry.service_type)
  const second = asId(entry.date)
  if (!name || added.size >= MAX_NAMES) return true
  if (id && users.size < MAX_NAMES) users.set(id, name)
  if (second && entry.change_type === 'added') added.set(second, name)
  return true
}

/** Guests from other workspaces, and bots, are named only in messages. */
export function addProfile(
  { users }: Directory,
  { user, user_profile, bot_profile }: JsonObject,
): void {
  const id = asId(user)
  if (id === undefined || users.has(id) || users.size >= MAX_NAMES) return
  const profile = asObject(user_profile)
  const name = profile ? userNameOf(profile) : asName(asObject(bot_profile)?.name)
  if (name) users.set(id, name)
}

/** Returns the name that Slack shows: the display name, if the member has chosen one. */
export function userNameOf(user: JsonObject): string | undefined {
  const profile = asObject(user.profile) ?? user
  return (
    asName(profile.display_name) ??
    asName(profile.real_name) ??
    asName(user.real_name) ??
    asName(user.name)
  )
}

function addConversation(
  { users, conversations }: Directory,
  entry: JsonObject,
  folder: string,
): boolean {
  const id = asId(entry.id)
  if (!id || conversations.size >= MAX_NAMES) return false
  const conversation = { id, name: asText(entry.name) ?? namesOfMembers(users, entry) ?? id }
  conversations.set(id, conversation)
  // The paths of files have this normal form, too.
  for (const name of [asText(entry.name), id])
    if (name) conversations.set(folder + name.normalize(), conversation)
  return true
}

/** Makes a name for a direct message, from the names of its members. */
function namesOfMembers(users: Directory['users'], entry: JsonObject): string | undefined {
  const members = asArray(entry.members).map(String)
  return asText(members.map((id) => users.get(id) ?? id).join(', '))
}

/** Returns the members and bots whose ids occur in a record. */
export function usersIn(record: unknown, { users }: Directory) {
  const ids = new Set(jsonOf(record).match(/\b[A-Z0-9]{2,}\b/g))
  return [...ids]
    .flatMap((id) => ({ id, name: users.get(id) ?? '' }))
    .filter(({ name }) => name !== '')
}

/** A record that nests too deep for this can't be written to the rejected file either. */
function jsonOf(record: unknown): string {
  try {
    return JSON.stringify(record) ?? ''
  } catch {
    return ''
  }
}

/** Names a bot that was added in this second, because the log of apps has another id for it. */
export function addBot({ users, added }: Directory, id: string, ts: string): void {
  const [second = ''] = ts.split('.')
  const name = added.get(second)
  if (name) users.set(id, name)
}

/** Returns the path up to and including its last `/`. */
export function folderOf(path: string): string {
  return path.slice(0, path.lastIndexOf('/') + 1)
}
