// What a format of export files is: it recognises its files and reads them as pieces of threads.
import type { QuoteRequest, ThreadRequest } from '@sluice/contract'

/** A file of the input, wherever it lies: on disk, in an archive, or on standard input. */
export interface InputFile {
  /** Its path within the input, with `/` between folders. */
  path: string
  /** Whether it is known to have no byte. */
  isEmpty?: boolean
  /** Reads it from its beginning, inflated. Standard input throws if it is read to its end a second time. */
  open(): AsyncIterable<Buffer>
}

export interface Place {
  path: string
  /** From 1. */
  line?: number
  /** A JSON Pointer to the record within the file, or within the line. */
  pointer?: string
}

/** A quote as a format reads it. The bounds of `GET /limits` are applied before it is posted. */
export type QuoteInput = Omit<QuoteRequest, 'text'> & {
  text: string
  /** The names of files that were attached. They stand in for a text that is empty. */
  attachments?: readonly string[]
}

/** The fields of a source that a piece has. */
export type SourceFields = Partial<Omit<ThreadRequest, 'service' | 'externalId' | 'quotes'>> & {
  /** Used only if no piece has a title and no title is stored. */
  placeholderTitle?: string
}

/** A part of one source. */
export interface Piece {
  kind: 'piece'
  service: ThreadRequest['service']
  externalId: string
  /**
   * The ids of the mails before this one, its parent last. Then `externalId` is the id of this mail: which source it
   * belongs to shows only in the whole input, and its fields are those of the source if it is the topmost mail.
   */
  references?: readonly string[]
  /** Sorts the pieces of one source, equal ones as in the input. A field of a later piece replaces an earlier one. */
  order: string
  fields: SourceFields
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
  /** What the record needs from the rest of its file to be read again, such as its channel. */
  context?: object
  /** The format of the record, if it is not that of its file. */
  format?: string
  /** Stands before the externalId of its source. */
  idPrefix?: string
}

/** A value that was left out, cut or replaced on purpose, or a warning. The summary counts these by reason. */
export interface Noted {
  kind: 'skipped' | 'cut' | 'replaced' | 'warning'
  /** In the plural, for a count: "messages that were deleted". A warning comes once a file. */
  reason: string
  place: Place
}

export type Found = Piece | Rejected | Noted

export function rejected(reason: string, place: Place, record: unknown): Rejected {
  return { kind: 'rejected', reason, place, record }
}

export function skipped(reason: string, place: Place): Noted {
  return { kind: 'skipped', reason, place }
}

export type ReadFile = (file: InputFile, options: FormatOptions) => AsyncIterable<readonly Found[]>

/** Reads one file after another. */
export function eachFile(read: ReadFile): Format['read'] {
  return async function* (files, options) {
    for (const file of files) yield* read(file, options)
  }
}

export interface FormatOptions {
  /** Slack: leave out messages that nobody answered. */
  threadsOnly?: boolean
  /** Slack: the workspace's name in its URLs. */
  workspace?: string
  /** Zendesk: read comments that are not public, too. */
  internalNotes?: boolean
  /** The time zone of dates that name none, as an IANA name. */
  timezone?: string
  /** Mail: leave out the text that a mail quotes. */
  stripQuotes?: boolean
  /** CSV: the column whose value is the externalId of the row's source. */
  groupBy?: string
  /** Columns to other names, such as title → subject: the field and the column. */
  map: ReadonlyMap<string, string>
  /** Values of fields for all threads, such as service → custom. */
  set: ReadonlyMap<string, string>
}

export interface Format {
  /** As `--format` names it. */
  name: string
  description: string
  /** Each piece is a whole thread. Without this, the pieces of one source may lie apart. */
  hasWholeThreads?: boolean
  /** Returns whether these files are of this format. It reads at most the beginnings of a few of them. */
  recognises(files: readonly InputFile[], beginning: (file: InputFile) => Promise<Buffer>): Promise<boolean>
  /**
   * Yields lists of some hundred findings: a promise for each finding would cost more than reading it.
   *
   * @throws {FormatError} if the files as a whole can't be read as this format.
   */
  read(files: readonly InputFile[], options: FormatOptions): AsyncIterable<readonly Found[]>
  /**
   * Returns an export with nothing but a record that was rejected: its files by their paths. Without this, the record's
   * text is a file.
   */
  restore?(record: string, context: Readonly<Record<string, unknown>>, path: string): Readonly<Record<string, string>>
}

/** The input is not of its format, or needs an option. The message says what to do. */
export class FormatError extends Error {
  override name = 'FormatError'
}
