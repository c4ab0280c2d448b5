// An import's request, its dependencies, and its progress.
import type { Readable } from 'node:stream'
import type { Format, FormatOptions } from '@sluice/formats'
import type { Checkpoint } from './account/checkpoint.ts'
import type { RejectedRecord, Tally } from './account/ledger.ts'
import type { PiecesSorted } from './gather/gather-threads.ts'
import type { BytesRead } from './input/read-counted.ts'
import type { ProgressDisplay, ProgressState } from './show/progress.ts'

/** What the user asks for. */
export interface ImportRequest {
  names: readonly string[]
  format?: string
  formatOptions: FormatOptions
  idPrefix: string
  isDryRun: boolean
  /** Whether to keep a checkpoint beside the input. */
  keepsCheckpoint: boolean
  /** The file of rejected records, if it is not to lie beside the input. */
  rejected?: string
  /** More rejected records than this end the import. */
  maxErrors: number
  /** Batches in flight, instead of a number that adapts. */
  concurrency?: number
  tempFolder: string
}

/** The service, and the key of an importer. */
export interface Target {
  url: string
  apiKey: string
}

export interface ImportDeps {
  stdin: Readable
  formats: readonly Format[]
  /** Throws NoInstance or ApiUnknown if the target is not known. */
  findTarget: () => Promise<Target>
  /** Aborted with Interrupted when the user ends the import. */
  interrupted: AbortSignal
  /** Aborted when what is in flight must end, too. */
  hurry: AbortSignal
  show: (state: () => ProgressState) => ProgressDisplay
  /** Is called for the first rejected records of a dry run. */
  showRejected: (record: RejectedRecord) => void
}

/** The facts of the summary, as far as the import got. */
export interface RunState {
  tally: Tally
  bytes: BytesRead
  sorted: PiecesSorted
  rejectedPath: string | undefined
  checkpoint: Checkpoint | undefined
  /** The threads that earlier runs settled, if this one goes on from a checkpoint. */
  threadsBefore?: number
}
