// An import's request, its dependencies, its progress, what ends it, and what the user can do then.
import type { Readable } from 'node:stream'
import { SluiceProblem, SluiceUnreachable } from '@sluice/client'
import type { Target } from '@sluice/terminal'
import { count, UserError } from '@sluice/terminal'
import type { Checkpoint } from './account/checkpoint.ts'
import type { RejectedRecord, Tally } from './account/ledger.ts'
import { FormatError, type FormatOptions } from './formats/format.ts'
import type { ProgressDisplay, ProgressState } from './show/progress.ts'
import type { State } from './show/summary.ts'

/** What the user asks for: the files, and the options that decide what becomes of them. */
export interface ImportRequest extends FormatOptions {
  names: readonly string[]
  format?: string
  /** The encoding of files that are not Unicode, as TextDecoder names it. */
  encoding?: string
  idPrefix: string
  dryRun?: true
  /** Whether to keep a checkpoint beside the input. */
  checkpoint: boolean
  /** The file of rejected records, if it has a name of its own. */
  rejected?: string
  /** Where the checkpoint and the file of rejected records lie, if not beside the input. */
  stateDir?: string
  /** More rejected records than this end the import. */
  maxErrors: number
  /** The most batches in flight. */
  concurrency: number
  tempDir: string
}

export interface ImportDeps {
  stdin: Readable
  /** Throws UserError if the target is not known. */
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
export interface RunState extends ProgressState {
  rejectedPath?: string
  checkpoint?: Checkpoint
  /** The threads that earlier runs settled, if this one goes on from a checkpoint. */
  threadsBefore?: number
}

/** Requests in flight may last this long after the user stopped an import, and after a failure. */
const GRACE_MS = { stopped: 10_000, failed: 2_000 }

export type Stops = ReturnType<typeof createStops>

export function createStops({ interrupted, hurry }: ImportDeps) {
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
    /** Stops once too many records were rejected. The tally counts the last one only after this. */
    afterErrors({ threads }: Tally, most: number) {
      if (threads.rejected < most) return
      const problem = `More records than ${count(most)} were rejected. Allow more with --max-errors.`
      failed.abort(new TooManyErrors(problem))
    },
  }
}

export class Interrupted extends Error {}

class TooManyErrors extends Error {}

/** An error that none of these explains is a fault of this program. */
export function failureOf(error: unknown): { state: State; problem?: string } {
  if (error instanceof Interrupted) return { state: 'interrupted' }
  if (error instanceof TooManyErrors) return { state: 'gave_up', problem: error.message }
  if (error instanceof SluiceProblem) return { state: 'failed', problem: problemOf(error) }
  if (error instanceof SluiceUnreachable)
    return { state: 'failed', problem: `${error.message} Check --url, and that the service runs.` }
  if (error instanceof UserError || error instanceof FormatError) return { state: 'failed', problem: error.message }
  const ofSystem = systemProblem(error)
  return ofSystem === undefined
    ? { state: 'crashed', problem: error instanceof Error ? (error.stack ?? error.message) : String(error) }
    : { state: 'failed', problem: ofSystem }
}

function problemOf(error: SluiceProblem): string {
  const advice =
    error.status === 403 ? ' Check the key (SLUICE_API_KEY, --key-file): it must be one of an importer.' : ''
  return `The service refused: ${error.message}${advice}`
}

/** What the operating system refused, such as room on the disk. */
function systemProblem(error: unknown): string | undefined {
  const { code, path, message } = Object(error)
  const place = typeof path === 'string' ? ` (${path})` : ''
  switch (code) {
    case 'ENOSPC':
    case 'EDQUOT':
      return `The disk is full${place}. Free some space, or name a folder of another disk with --state-dir (checkpoint and rejected file) or --temp-dir (sorting), and run the same command again.`
    case 'EACCES':
    case 'EPERM':
    case 'EROFS':
    case 'ENOENT':
      return `A file can't be written${place}: ${message}. Name a folder that can be written with --state-dir (checkpoint and rejected file) or --temp-dir (sorting).`
    default:
      return typeof code === 'string' && /^E[A-Z]+$/.test(code) ? message : undefined
  }
}
