// What a format of export files does: it recognises its files, and reads them as pieces of threads.
import type { QuoteRequest, ThreadRequest } from '@sluice/contract'
import { UserError } from '@sluice/terminal'

/** A file of the input, wherever it lies: on disk, in an archive, or on standard input. */
export interface InputFile {
  /** Its path within the input, with `/` between folders. */
  path: string
  /** Whether the file is known to be empty. */
  isEmpty?: boolean
  /** Whether the user named this file: it is not one of many in a folder or an archive. */
  isNamed?: boolean
  /**
   * Reads the file from its beginning, inflated. Standard input throws if it is opened again after
   * more than 1 MiB of it was read. Throws UnreadableFile.
   */
  open(): AsyncIterable<Buffer>
  /** Reads its first bytes, if that is faster than opening it. */
  beginning?: (bytes: number) => Promise<Buffer>
  /** Opens a zip archive that lies in a folder, and returns its files. */
  openArchive?: () => Promise<InputFile[]>
}

export interface Place {
  path: string
  /** From 1. */
  line?: number
  /** A JSON Pointer to the record within the file, or within the line. */
  pointer?: string
}

/**
 * A quote as a format reads it. It is fitted into the bounds of `GET /limits` before it is posted.
 */
export type QuoteInput = Omit<QuoteRequest, 'text'> & {
  text: string
  /** The names of files that were attached. They stand in for a text that is empty. */
  attachments?: readonly string[]
}

/** The fields of a source that a piece has. */
export type SourceInput = Partial<Omit<ThreadRequest, 'service' | 'externalId' | 'quotes'>> & {
  /** Used only if no piece has a title and no title is stored. */
  placeholderTitle?: string
}

/** A part of one source. */
export interface Piece {
  kind: 'piece'
  service: ThreadRequest['service']
  externalId: string
  /**
   * Of a mail: the ids of the mails before it, its parent last. `externalId` is then the id of the
   * mail, because only the whole input shows which source the mail belongs to. The fields of the
   * topmost mail become those of the source.
   */
  references?: readonly string[]
  /** Sorts the pieces of one source. A field of a later piece replaces that of an earlier one. */
  order: string
  fields: SourceInput
  quotes: readonly QuoteInput[]
  place: Place
}

/** A record that is no thread, although it should be one. */
export interface Rejected {
  kind: 'rejected'
  reason: string
  place: Place
  /** The record as it stands in the input. */
  record: unknown
  /** What reading the record again needs from the rest of its file, such as its channel. */
  context?: object
  /** The format of the record, if it is not that of its file. */
  format?: string
  /** What stands before the externalId of its source. */
  idPrefix?: string
}

/**
 * A value that was left out, cut or replaced on purpose, or that is stored but doubtful, or a
 * warning. The summary counts these by reason.
 */
export interface Noted {
  kind: 'skipped' | 'cut' | 'replaced' | 'doubtful' | 'warning'
  /**
   * In the plural, to be counted: "messages that were deleted". A warning is noted once for each
   * file.
   */
  reason: string
  place: Place
}

export type Found = Piece | Rejected | Noted

export type FoundLists = AsyncGenerator<readonly Found[]>

/** Returns a function that makes the pieces of a format whose sources all have this service. */
export function piecesOf(service: Piece['service']) {
  return (
    externalId: string,
    order: string,
    fields: SourceInput,
    quotes: readonly QuoteInput[],
    place: Place,
  ): Piece => ({ kind: 'piece', service, externalId, order, fields, quotes, place })
}

export function rejected(reason: string, place: Place, record: unknown): Rejected {
  return { kind: 'rejected', reason, place, record }
}

/** A value that is left out on purpose. */
export function skipped(reason: string, place: Place): Noted {
  return { kind: 'skipped', reason, place }
}

export type ReadFile = (file: InputFile, options: FormatOptions) => AsyncIterable<readonly Found[]>

/** Makes the `read` of a format that reads one file after another. */
export function eachFile(read: ReadFile): Format['read'] {
  return async function* (files, options) {
    for (const file of files) yield* orRejected(file, read(file, options))
  }
}

/** Which files belong to an export that is a folder, by their paths within it. */
interface FolderExport {
  /**
   * Matches the end of a recognised file's path that lies within the folder. Else the file lies in
   * the folder itself.
   */
  within?: RegExp
  /**
   * Files that its program writes, and that no format recognises. Nothing else: people keep files
   * beside exports.
   */
  parts?: RegExp
  /**
   * Files that people sent. They belong to it even if another format recognises them, unless the
   * user names them.
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

/**
 * Yields what a file has. A file that is damaged, or that this user may not read, is rejected and
 * harms no other.
 */
export async function* orRejected<T>(
  { path }: InputFile,
  found: AsyncIterable<readonly T[]>,
): AsyncGenerator<readonly (T | Rejected)[]> {
  try {
    yield* found
  } catch (error) {
    if (!(error instanceof UnreadableFile)) throw error
    yield [rejected(`The file can't be read: ${error.reason}`, { path }, undefined)]
  }
}

/** A file can't be read, or not to its end. */
export class UnreadableFile extends UserError {
  readonly reason: string

  constructor(path: string, reason: string, cause: unknown) {
    super(`${path} cannot be read: ${reason}`, { cause })
    this.reason = reason
  }
}

/** The options that formats read. The help of the command explains them. */
export interface FormatOptions {
  threadsOnly?: boolean
  workspace?: string
  internalNotes?: boolean
  timezone?: string
  /** The order of day, month and year, such as D.M.Y. */
  dateFormat?: string
  stripQuotes?: boolean
  groupBy?: string
  /** Which column or name a field is read from, such as title → subject. */
  map: ReadonlyMap<string, string>
  /** The value that a field of all threads gets, such as service → custom. */
  set: ReadonlyMap<string, string>
}

/** The lists and tables of the documents, and the help of the command, derive from its texts. */
export interface Format {
  name: string
  /** What a list of formats calls it, such as "Slack". */
  title: string
  /** Which files it reads. */
  description: string
  /** What becomes one source, such as "a ticket". In Markdown. */
  sourceIs: string
  /**
   * How to get such an export, for those who name no file. Formats without it are only named to
   * them.
   */
  howTo?: string
  /** Whether each piece is a whole thread. Else the pieces of one source may lie apart. */
  hasWholeThreads?: boolean
  /**
   * Whether `read` counts files that it does not recognise, also if `--format` names the format.
   */
  skipsOthers?: boolean
  /** The options that it reads. It gets no others. */
  options?: readonly (keyof FormatOptions)[]
  /** Returns whether a file is of this format, by its name and its beginning. */
  recognises(file: InputFile, beginning: Buffer): boolean
  /**
   * Returns why it can't read a file that it recognises, such as a table without the columns of a
   * thread. Called only if the input has other files, too. Throws FormatError if an option is wrong
   * for all files.
   */
  faultOf?(file: InputFile, beginning: Buffer, options: FormatOptions): Promise<string | undefined>
  /**
   * Returns a function that returns whether a file belongs to an export of this format, by its
   * path. The file may belong to it although another format recognises it. `own` has the paths of
   * the files that this format recognises. It is empty before the first file is opened. A format
   * without `owns` reads only the files that it recognises. A file that is neither recognised nor
   * owned is named as unread: a file that is owned wrongly is lost in silence.
   */
  owns?(
    files: readonly InputFile[],
    own: ReadonlySet<string>,
  ): (path: string, isRecognised: boolean) => boolean
  /**
   * Returns whether the program of the export wrote a file that no format recognises, by its
   * beginning.
   */
  wrote?(beginning: Buffer): boolean
  /**
   * Yields lists of some hundred findings each, because a wait for each finding would take longer
   * than reading it. Throws FormatError if the files as a whole can't be read.
   */
  read(files: readonly InputFile[], options: FormatOptions): AsyncIterable<readonly Found[]>
  /**
   * Returns an export of one rejected record: its files by their paths. Without `restore`, the
   * record is a file.
   */
  restore?(
    record: string,
    context: Readonly<Record<string, unknown>>,
    path: string,
  ): Readonly<Record<string, string>>
}

/** The input is not of its format, or an option is missing. The message says what to do. */
export class FormatError extends Error {
  override name = 'FormatError'
  /** The options, as a shell reads them, that the command lacks. */
  readonly lacking: readonly string[]

  constructor(message: string, lacking: readonly string[] = []) {
    super(message)
    this.lacking = lacking
  }
}
