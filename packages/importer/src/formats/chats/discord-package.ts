// Reads the data package that Discord sends to an account. It has only the messages that the
// account itself wrote.
import { basename, dirname, join } from 'node:path/posix'
import {
  type Found,
  type InputFile,
  type Noted,
  ownsFolder,
  type Piece,
  type Rejected,
} from '../format.ts'
import { csvColumns, readCsvRows } from '../read/csv-rows.ts'
import { jsonShape } from '../read/json-beginning.ts'
import { type JsonRecord, readJsonFile } from '../read/json-records.ts'
import { asId, asObject, asText, type JsonObject } from '../values/record-fields.ts'

/** What the summary says about a package. */
export const OWN_ONLY =
  "Discord's data package has only the messages of its own account (DiscordChatExporter also exports messages of others)"
const COLUMNS = ['ID', 'Timestamp', 'Contents', 'Attachments']

/** The folder has a name in the account's language. Until 2021, channels had no `c`. */
const WITHIN = /(?<![^/])(?:(?:[^/]+\/)?c?(\d+)\/)?messages\.(?:json|csv)$/
const NAMES = /(?:^|\/)(?:index|channel|user)\.json$/
/** Names, channels without messages, servers, and other data that Discord has about the account. */
const PARTS =
  /^(?:[^/]+\/(?:user|tickets|traits)\.json|(?:[^/]+\/)?(?:(?:index|channel)\.json|c?\d+\/(?:channel|messages)\.(?:json|csv)|\d{15,20}\/[a-z-]+\.json|[a-z]+\/events-[\d-]+of-\d+\.json|(?:applications|user_data_exports)\/.*\.json))$/

export const ownsPackage = ownsFolder({ within: WITHIN, parts: PARTS })

/** Recognises a file of messages. */
export function isPackaged(beginning: Buffer): boolean {
  if (!beginning.includes('Contents')) return false
  const { root, members } = jsonShape(beginning)
  const names = root === '[' ? members : new Set(csvColumns(beginning).map((name) => `[].${name}`))
  return COLUMNS.every((name) => names.has(`[].${name}`))
}

type Names = ReadonlyMap<string, JsonObject>

/** Reads the names of channels, by their files' paths: about 100 bytes of memory for each. */
export async function readNames(files: readonly InputFile[]): Promise<Names> {
  const names = new Map<string, JsonObject>()
  for (const file of files.filter(({ path }) => NAMES.test(path)))
    for await (const records of readJsonFile(file, ['']))
      for (const record of records)
        if (record.kind === 'record') names.set(file.path, asObject(record.value) ?? {})
  return names
}

/** Returns the channel of a file of messages, and its author's name. */
export function channelOf(path: string, names: Names) {
  const [within = path, number] = WITHIN.exec(path) ?? []
  const root = path.slice(0, path.length - within.length)
  const { guild, ...channel } = names.get(join(dirname(path), 'channel.json')) ?? {}
  const id = asId(channel.id) ?? number
  const listed = asText(names.get(join(dirname(path), '../index.json'))?.[id ?? ''])
  const [, account] =
    [...names].find(([name]) => name.startsWith(root) && name.endsWith('/user.json')) ?? []
  // Since 2023, the number behind a person's name is 0.
  const name = asText(channel.name) ?? listed?.replace(/#0$/, '')
  return {
    guild: asObject(guild) ?? {},
    channel: { ...channel, id, name },
    author: { name: account?.username },
  }
}

/** Reads messages, and converts them to the form that DiscordChatExporter writes. */
export async function* readPackaged(
  file: InputFile,
  author: JsonObject,
): AsyncGenerator<(JsonRecord | Exclude<Found, Piece>)[]> {
  const exported = (value: unknown) => ({ ...asExported(asObject(value) ?? {}), author })
  if (file.path.endsWith('.csv'))
    for await (const { rows } of readCsvRows(file))
      yield rows.map((row): JsonRecord | Rejected | Noted => {
        if (row.kind !== 'row') return row
        const value = exported(Object.fromEntries(row.values))
        return { kind: 'record', path: '', value, place: row.place }
      })
  else
    for await (const records of readJsonFile(file, ['/*'], withExactIds))
      yield records.map((one) =>
        one.kind === 'record' ? { ...one, value: exported(one.value) } : one,
      )
}

/** Puts ids in quotation marks, because they have more digits than JavaScript reads exactly. */
const withExactIds = (json: string) => json.replace(/("ID"\s*:\s*)(\d+)/g, '$1"$2"')

function asExported({ ID, Timestamp, Contents, Attachments }: JsonObject) {
  const urls = asText(Attachments)?.split(/\s+/) ?? []
  const attachments = urls.map((url) => ({ fileName: basename(url.split('?', 1)[0] ?? '') }))
  return { id: ID, timestamp: Timestamp, content: Contents, attachments }
}
