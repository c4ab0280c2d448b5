// Defines the input of an import and what stops it, and explains its failures to the user.
import type { Readable } from 'node:stream'
import { SluiceProblem, SluiceUnreachable } from '@sluice/client'
import type { Target } from '@sluice/terminal'
import { formatNumber, tlsFault, UserError } from '@sluice/terminal'
import type { Checkpoint } from './account/checkpoint.ts'
import type { RejectedRecord, Tally } from './account/ledger.ts'
import { FormatError, type FormatOptions } from './formats/format.ts'
import type { ConversationCounter } from './gather/conversation-counts.ts'
import type { InputCounts } from './input-counts.ts'
import type { ProgressDisplay, ProgressState } from './show/progress.ts'
import type { State } from './show/summary.ts'

/** What the user asks for: the files, and options that decide what happens to them. */
export interface ImportOptions extends FormatOptions {
  names: readonly string[]
  format?: string
  /** The encoding of files that are not Unicode, by its name in TextDecoder. */
  encoding?: string
  idPrefix: string
  dryRun?: true
  /** Whether the summary lists more conversations than a dry run's summary does. */
  verbose?: true
  checkpoint: boolean
  /** The path of the file of rejected records, if the user has named one. */
  rejected?: string
  /** For the checkpoint and the rejected file, unless they are in the input's folder. */
  stateDir?: string
  /** If more records than this are rejected, the import gives up. */
  maxErrors: number
  concurrency: number
  tempDir: string
}

export interface ImportDeps {
  stdin: Readable
  /**
   * Finds the API and the key.
   * @throws {UserError} if one of them is not known.
   */
  findTarget: () => Promise<Target>
  /** Aborts with Interrupted when the user ends the import. */
  interrupted: AbortSignal
  /** Aborts when requests in flight must end as well. */
  hurry: AbortSignal
  show: (state: () => ProgressState) => ProgressDisplay
  showRejected: (record: RejectedRecord) => void
}

/** The facts for the summary. If the import ended early, some are missing. */
export interface RunState extends ProgressState {
  counts?: InputCounts
  conversations?: ConversationCounter
  rejectedPath?: string
  checkpoint?: Checkpoint
  /** How many threads earlier runs have settled, if this run continues them. */
  threadsBefore?: number
}

/** Requests in flight may last this long after a stop or a failure. */
const GRACE_MS = { stopped: 10_000, failed: 2_000 }

export type Stops = ReturnType<typeof createStops>

/** Combines everything that stops an import: the user, a failure, and too many rejected records. */
export function createStops({ interrupted, hurry }: Pick<ImportDeps, 'interrupted' | 'hurry'>) {
  const failed = new AbortController()
  const late = new AbortController()
  const stopping = AbortSignal.any([interrupted, failed.signal])
  stopping.addEventListener('abort', () => {
    const grace = stopping.reason instanceof Interrupted ? GRACE_MS.stopped : GRACE_MS.failed
    setTimeout(() => late.abort(stopping.reason), grace).unref()
  })
  return {
    stopping,
    hurry: AbortSignal.any([hurry, late.signal]),
    fail: (error: unknown) => failed.abort(error),
    /** Stops if the next rejected record is one too many. Call it before counting it. */
    afterErrors(tally: Tally, most: number) {
      if (tally.threads.rejected >= most) failed.abort(tooManyErrors(tally, most))
    },
    /** Throws if an earlier run gave up: the bound applies to all runs together. */
    refuseAfterErrors(tally: Tally, most: number) {
      if (tally.threads.rejected > most) throw tooManyErrors(tally, most)
    },
  }
}

export class Interrupted extends Error {}

class TooManyErrors extends Error {}

/** Makes the error. If all records have the same reason, it is named once, at the beginning. */
function tooManyErrors({ reasons }: Tally, most: number): TooManyErrors {
  const [reason, ...others] = Object.keys(reasons)
  const shared =
    reason !== undefined && others.length === 0 ? `, all for one reason: ${reason}` : ''
  return new TooManyErrors(
    `More records than ${formatNumber(most)} were rejected${shared.replace(/\.?$/, '.')} Allow more with --max-errors.`,
  )
}

/** Explains what ended an import. If the error is unknown, this program is at fault. */
export function failureOf(error: unknown): {
  state: State
  problem?: string
  lacking?: readonly string[]
} {
  if (error instanceof Interrupted) return { state: 'interrupted' }
  if (error instanceof TooManyErrors) return { state: 'gave_up', problem: error.message }
  if (error instanceof SluiceProblem) {
    const advice = error.status === 403 ? ` ${KEY_ADVICE}` : ''
    return { state: 'failed', problem: `The service refused: ${error.message}${advice}` }
  }
  if (error instanceof SluiceUnreachable) {
    const advice =
      tlsFault(error)?.replace(/^its/, 'Its') ?? 'Check --url, and that the service runs'
    return { state: 'failed', problem: `${error.message} ${advice}.` }
  }
  if (error instanceof FormatError)
    return { state: 'failed', problem: error.message, lacking: error.lacking }
  if (error instanceof UserError) return { state: 'failed', problem: error.message }
  const ofSystem = systemProblem(error)
  return ofSystem === undefined
    ? {
        state: 'crashed',
        problem: error instanceof Error ? (error.stack ?? error.message) : String(error),
      }
    : { state: 'failed', problem: ofSystem }
}

const KEY_ADVICE =
  'Check the key (SLUICE_API_KEY, --key-file): it must be one of an importer, neither revoked nor expired. Any such key of the tenant will do.'

const FULL = new Set(['ENOSPC', 'EDQUOT'])
const UNWRITABLE = new Set(['EACCES', 'EPERM', 'EROFS', 'ENOENT', 'ENOTDIR'])

/** Explains an error of the operating system, such as a full disk, and no other error. */
function systemProblem(error: unknown): string | undefined {
  const { code, path, message } = Object(error)
  const place = typeof path === 'string' ? ` (${path})` : ''
  if (FULL.has(code))
    return `The disk is full${place}. Free some space, or name a folder of another disk with --state-dir (checkpoint and rejected file) or --temp-dir (sorting), and run the same command again.`
  if (UNWRITABLE.has(code))
    return `A file can't be written${place}: ${message}. Name a folder that can be written with --state-dir (checkpoint and rejected file), --rejected or --temp-dir (sorting).`
  return typeof code === 'string' && /^E[A-Z]+$/.test(code) ? message : undefined
}
