// What is said of a file that no format recognises.

import type { Format, InputFile, Noted } from '../formats/format.ts'
import { fileBeside, isMedia, kindWithoutMessages } from '../formats/read/files-beside.ts'
import { decodeBeginning } from '../formats/read/utf8-chunks.ts'
import { adviceOnOutlook } from './outlook-files.ts'

/** Matches files that servers keep beside mails. */
const OF_SERVERS = /(^|\/)(dovecot[.-]|courier|cyrus\.|(subscriptions|maildirfolder|maildirsize)$)|\.sieve$/i
/** Matches files that Thunderbird, Apple Mail and Proton's export keep beside mails. */
const OF_PROGRAMS =
  /(^|\/)((popstate|panacea|msgFilterRules)\.dat|filterlog\.html|table_of_contents|labels\.json)$|\.(msf|snm|plist|metadata\.json)$/i
/** Matches what explains an archive. */
const EXPLANATIONS = /(^|\/)(readme|licen[cs]e|copying)(\.\w+)?$/i

/**
 * Counts a file that is known to have no messages: it is empty, or its name says so. A file that the user names may
 * be a picture of many that a pattern of the shell names, but no document or index: these are named as unread.
 */
export function countIfWithoutMessages(file: InputFile): Noted | undefined {
  if (file.isNamed && !file.isEmpty && !isMedia(file)) return undefined
  const isIndex = [OF_SERVERS, OF_PROGRAMS].some((names) => names.test(file.path))
  const kind = isIndex ? 'indexes of mail programs' : EXPLANATIONS.test(file.path) ? 'explanations' : undefined
  return kindWithoutMessages(file) || kind ? fileBeside(file, kind) : undefined
}

const ZIP = Buffer.from('PK\x03\x04')
const GZIP = Buffer.from([0x1f, 0x8b])
/** What programs compress in ways that are not read. */
const PACKED: readonly [Buffer, string][] = [
  [Buffer.from('BZh'), 'bzip2: run bunzip2'],
  [Buffer.from('\xFD7zXZ', 'latin1'), 'xz: run unxz'],
  [Buffer.from('7z\xBC\xAF', 'latin1'), '7-Zip: unpack it (7z x)'],
  [Buffer.from('Rar!'), 'RAR: unpack it (unrar x)'],
]
const TAR = Buffer.from('ustar')
const TAR_AT = 257

/** Says how to import a file that no format recognises. */
export function adviceOn(path: string, beginning: Buffer, formats: readonly Format[]): string {
  const has = (magic: Buffer, at = 0) => beginning.subarray(at, at + magic.length).equals(magic)
  if (beginning.length === 0) return 'It is empty.'
  const outlook = adviceOnOutlook(path)
  if (outlook !== undefined) return outlook
  if (/\.(numbers|xls|xlsb)$/i.test(path)) return 'It is a spreadsheet: save it as .xlsx.'
  if (has(ZIP)) return 'It is a zip archive: save it as a file of its own whose name ends in .zip, and name that.'
  if (has(TAR, TAR_AT) || /\.tgz$/i.test(path)) return 'It is a tar archive: unpack it (tar -xf), and name the folder.'
  if (has(GZIP)) return 'It is compressed: give it a name that ends in .gz.'
  const how = PACKED.find(([magic]) => has(magic))?.[1]
  if (how !== undefined) return `It is compressed by ${how}, and name what it gives.`
  return (
    adviceOnHtml(decodeBeginning(beginning)) ??
    `These were tried: ${formats.map(({ name }) => name).join(', ')}. Name one with --format, or write the threads as ndjson: a line for each, as POST /sources accepts it.`
  )
}

function adviceOnHtml(text: string): string | undefined {
  if (!/^\s*<(!doctype html|html)/i.test(text)) return undefined
  if (/chatlog__|DiscordChatExporter/.test(text))
    return 'It is an HTML export of Discord: export the channel again by DiscordChatExporter with --format Json.'
  if (/<div class="page_wrap|<title>Exported Data</.test(text))
    return 'It is an HTML export of Telegram: export again with the format "Machine-readable JSON".'
  return 'It is a web page: export the messages as JSON or CSV.'
}
