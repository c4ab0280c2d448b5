// Says what to do with a file that no format recognises.

import type { Format, InputFile, Noted } from '../formats/format.ts'
import { fileBeside, isMedia, kindWithoutMessages } from '../formats/read/files-beside.ts'
import { adviceOf, SHAPES } from './known-relatives.ts'

/** Matches files that servers keep beside mails. */
const OF_SERVERS =
  /(^|\/)(dovecot[.-]|courier|cyrus\.|(subscriptions|maildirfolder|maildirsize)$)|\.sieve$/i
/** Matches files that Thunderbird, Apple Mail and Proton's export keep beside mails. */
const OF_PROGRAMS =
  /(^|\/)((popstate|panacea|msgFilterRules)\.dat|filterlog\.html|table_of_contents|labels\.json)$|\.(msf|snm|plist|metadata\.json)$/i
/** Matches files that explain an archive. */
const EXPLANATIONS = /(^|\/)(readme|licen[cs]e|copying)(\.\w+)?$/i

/**
 * Counts a file that has no messages: it is empty, or its name shows it. If the user has named the
 * file, only an empty file or a picture is counted (a pattern of the shell may name many pictures).
 * A document or an index is then reported as unread.
 */
export function countIfWithoutMessages(file: InputFile): Noted | undefined {
  if (file.isNamed && !file.isEmpty && !isMedia(file)) return undefined
  const isIndex = [OF_SERVERS, OF_PROGRAMS].some((names) => names.test(file.path))
  const kind = isIndex
    ? 'indexes of mail programs'
    : EXPLANATIONS.test(file.path)
      ? 'explanations'
      : undefined
  return kindWithoutMessages(file) || kind ? fileBeside(file, kind) : undefined
}

/** Says how to import a file that no format recognises. */
export function adviceOn(path: string, beginning: Buffer, formats: readonly Format[]): string {
  if (beginning.length === 0) return 'It is empty.'
  const names = formats.map(({ name }) => name).join(', ')
  const ofOther =
    formats.length === 1 ? `It is no file of ${names}, which --format names.` : undefined
  return (
    adviceOf(SHAPES, path, beginning) ??
    ofOther ??
    `These were tried: ${names}. Name one with --format, or write the threads as ndjson: a line for each, as POST /sources accepts it.`
  )
}
