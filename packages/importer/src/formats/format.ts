// Defines a format of export files: it recognises its files, and reads them as pieces of threads.
import type { QuoteRequest, ThreadRequest } from '@sluice/contract'
import { UserError } from '@sluice/terminal'

/** A file of the input: on disk, in an archive, or on standard input. */
export interface InputFile {
  /** The file's path within the input, with `/` between folders. */
  path: string
  /** Whether the file is known to be empty. */
  isEmpty?: boolean
  /** Whether the user named this file itself, rather than its folder or archive. */
  isNamed?: boolean
  /**
   * Reads the file from its beginning, inflated. Throws UnreadableFile. If more than 1 MiB of
   * standard input has been read, it can't be opened again, and throws.
   */
  open(): AsyncIterable<Buffer>
  /** Reads the file's first bytes, if that is faster than opening it. */
  beginning?: (bytes: number) => Promise<Buffer>
  /** If the file is a zip archive in a folder: opens the archive, and returns its files. */
  openArchive?: () => Promise<InputFile[]>
}

export interface Place {
  path: string
  /** From 1. */
  line?: number
  /** A JSON Pointer to the record within the file, or within the line. */
  pointer?: string
}

/** A quote as a format reads it. It is later fitted into the bounds of `GET /limits`. */
export type QuoteInput = Omit<QuoteRequest, 'text'> & {
  text: string
  /** The names of attached files. They replace an empty text. */
  attachments?: readonly string[]
}

/** The fields of a source, as far as a piece has them. */
export type SourceInput = Partial<Omit<ThreadRequest, 'service' | 'externalId' | 'quotes'>> & {
  /** Used only if no piece has a title and no title is stored. */
  placeholderTitle?: string
}

/** A part of a source. */
export interface Piece {
  kind: 'piece'
  service: ThreadRequest['service']
  externalId: string
  /**
   * Only in a mail: the ids of the mails before it, its parent last. Then `externalId` is the
   * mail's id, because only the whole input shows to which source the mail belongs. The topmost
   * mail's fields become the fields of the source.
   */
  references?: readonly string[]
  /** Sorts the pieces of a source. A later piece replaces the fields of an earlier one. */
  order: string
  fields: SourceInput
  quotes: readonly QuoteInput[]
  place: Place
  /**
   * Whether it is in Sluice's own form, which keeps a date such as 1970-01-01T00:00:00Z and the
   * marks in names. In other formats, the date stands for a missing one, and marks are no text.
   */
  isOwnForm?: true
}

/** A record that should be a part of a thread, but can't be read as one. */
export interface Rejected {
  kind: 'rejected'
  reason: string
  place: Place
  /** The record as it is in the input. */
  record: unknown
  /** Other data of its file, such as its channel, which reading the record again needs. */
  context?: object
  /** The format of the record, if it differs from the file's format. */
  format?: string
  /** The prefix of the externalId of the record's source. */
  idPrefix?: string
}

/**
 * Something for the summary, which counts it by reason: a value that was left out, cut or replaced
 * on purpose, a stored but doubtful value, or a warning.
 */
export interface Noted {
  kind: 'skipped' | 'cut' | 'replaced' | 'doubtful' | 'warning'
  /** In the plural: "messages that were deleted". Warnings are noted once for each file. */
  reason: string
  place: Place
}

/** A page of an answer. Once all files are read, the pages show whether the input lacks others. */
export interface AnswerPage {
  kind: 'page'
  /** The list in it, such as `/issues`, behind the address of the list if it is known. */
  list: string
  items: number
  /** The number of items that all pages have, if the answer says it. */
  total?: number | undefined
  /** Whether the answer says that it is not the last page. */
  hasMore: boolean
  /** Whether `hasMore` is only guessed from the number of items. */
  isGuess?: boolean
  place: Place
}

export type Found = Piece | Rejected | Noted | AnswerPage

export type FoundLists = AsyncGenerator<readonly Found[]>

/**
 * Returns a function that makes pieces, for a format whose sources all have this service.
 * @param fieldsOf returns the fields that each source has by its id, unless a piece has others.
 */
export function piecesOf(
  service: Piece['service'],
  fieldsOf?: (externalId: string) => SourceInput,
) {
  return (
    externalId: string,
    order: string,
    own: SourceInput,
    quotes: readonly QuoteInput[],
    place: Place,
  ): Piece => {
    const fields = fieldsOf === undefined ? own : { ...fieldsOf(externalId), ...own }
    return { kind: 'piece', service, externalId, order, fields, quotes, place }
  }
}

export function rejected(reason: string, place: Place, record: unknown): Rejected {
  return { kind: 'rejected', reason, place, record }
}

/** Rejects a file as a whole. */
export function rejectedFile({ path }: InputFile, reason: string): Rejected {
  return rejected(reason, { path }, undefined)
}

/** Notes a value that is left out on purpose. */
export function skipped(reason: string, place: Place): Noted {
  return { kind: 'skipped', reason, place }
}

/** Notes what was left out of a record that was read. */
export function withSkipped(found: Found, reasons: readonly string[], place: Place): Found[] {
  return [found, ...reasons.map((reason) => skipped(reason, place))]
}

export type ReadFile = (file: InputFile, options: FormatOptions) => AsyncIterable<readonly Found[]>

/** Makes the `read` of a format that reads one file after the other. */
export function eachFile(read: ReadFile): Format['read'] {
  return async function* (files, options) {
    for (const file of files) yield* orRejected(file, read(file, options))
  }
}

/** Says which files belong to an export that is a folder, by their paths within the folder. */
interface FolderExport {
  /**
   * Matches the part of a recognised file's path that is within the folder. Without it, the file is
   * directly in the folder.
   */
  within?: RegExp
  /**
   * Files that the export's program writes, and that no format recognises. It must match no other
   * files, because people keep them beside exports.
   */
  parts?: RegExp
  /**
   * Files that people sent. They belong to the export even if another format recognises them,
   * unless the user names them.
   */
  uploads?: RegExp
}

/** Makes the `owns` of a format whose export is a folder. */
export function ownsFolder({
  within = /(?<![^/])[^/]*$/,
  parts,
  uploads,
}: FolderExport): NonNullable<Format['owns']> {
  const foldersOf = (path: string) =>
    path.split('/').map((_, at, names) => names.slice(0, at).join('/') + (at > 0 ? '/' : ''))
  return (_, own) => {
    if (own.size === 0) return () => false
    const exports = new Set([...own].map((path) => path.replace(within, '')))
    return (path, isRecognised) => {
      const rests = foldersOf(path).flatMap((folder) =>
        exports.has(folder) ? path.slice(folder.length) : [],
      )
      return (
        own.has(path) ||
        rests.some((rest) => uploads?.test(rest) || (!isRecognised && parts?.test(rest)))
      )
    }
  }
}

/** Yields what a file has. Rejects a file that can't be read, so that others are still read. */
export async function* orRejected<T>(
  file: InputFile,
  found: AsyncIterable<readonly T[]>,
): AsyncGenerator<readonly (T | Rejected)[]> {
  try {
    yield* found
  } catch (error) {
    if (!(error instanceof UnreadableFile)) throw error
    yield [rejectedFile(file, `The file can't be read: ${error.reason}`)]
  }
}

/** A file can't be read, or can only be read in part. */
export class UnreadableFile extends UserError {
  readonly reason: string

  constructor(path: string, reason: string, cause: unknown) {
    super(`${path} cannot be read: ${reason}`, { cause })
    this.reason = reason
  }
}

/** The options that formats read. The command's help explains them. */
export interface FormatOptions {
  threadsOnly?: boolean
  workspace?: string
  internalNotes?: boolean
  timezone?: string
  /** The order of day, month and year, such as D.M.Y. */
  dateFormat?: string
  stripQuotes?: boolean
  groupBy?: string
  /** The column or name from which a field is read, such as title → subject. */
  map: ReadonlyMap<string, string>
  /** The value that a field of all threads gets, such as service → custom. */
  set: ReadonlyMap<string, string>
}

/** A format. The documents' lists and tables, and the command's help, derive from its texts. */
export interface Format {
  name: string
  /** The name of the format in lists, such as "Slack". */
  title: string
  /** Which files the format reads. */
  description: string
  /** What becomes a source, such as "a ticket". In Markdown. */
  sourceIs: string
  /** How to get such an export, for users who name no file. If missing, only the name is shown. */
  howTo?: string
  /** Whether each piece is a whole thread. If not, the pieces of a source may be far apart. */
  hasWholeThreads?: boolean
  /** Whether `read` counts files that it does not recognise, even with `--format`. */
  skipsOthers?: boolean
  /** The options that the format reads. It gets no others. */
  options?: readonly (keyof FormatOptions)[]
  /** Returns whether a file has this format, by its name and its beginning. */
  recognises(file: InputFile, beginning: Buffer): boolean
  /**
   * Returns why the format can't read a file that it recognises, such as a table without the
   * columns of a thread. Called only if the input has other files as well. Throws FormatError if an
   * option is wrong for all files.
   */
  faultOf?(file: InputFile, beginning: Buffer, options: FormatOptions): Promise<string | undefined>
  /**
   * Returns a function that says whether a file belongs to an export of this format, by its path.
   * It may belong to the export even if another format recognises it. A format without `owns` reads
   * only the files that it recognises. A file that no format recognises or owns is reported as
   * unread. So if a file is owned by mistake, it is lost without a message.
   * @param own the paths of the files that this format recognises. Empty before the first file is
   * opened.
   */
  owns?(
    files: readonly InputFile[],
    own: ReadonlySet<string>,
  ): (path: string, isRecognised: boolean) => boolean
  /**
   * Returns whether the beginning of a file that no format recognises shows that the export's
   * program wrote it.
   */
  wrote?(beginning: Buffer, path: string): boolean
  /**
   * Yields lists of about a hundred findings each, because awaiting each finding would take longer
   * than reading it. Throws FormatError if the files as a whole can't be read.
   */
  read(files: readonly InputFile[], options: FormatOptions): AsyncIterable<readonly Found[]>
  /**
   * Returns the files, by path, of an export that has only this rejected record. Without `restore`,
   * the record itself is written as a file.
   */
  restore?(
    record: string,
    context: Readonly<Record<string, unknown>>,
    path: string,
  ): Readonly<Record<string, string>>
}

/** The input does not have the format, or an option is missing. The message says what to do. */
export class FormatError extends Error {
  override name = 'FormatError'
  /** The options that the command lacks, in the form in which a shell reads them. */
  readonly lacking: readonly string[]

  constructor(message: string, lacking: readonly string[] = []) {
    super(message)
    this.lacking = lacking
  }
}
