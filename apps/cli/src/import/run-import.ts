// Runs an import from its files to its summary.
import { createHash } from 'node:crypto'
import { resolve } from 'node:path'
import type { Readable } from 'node:stream'
import { createClient } from '@sluice/client'
import { DEFAULT_LIMITS } from '@sluice/contract'
import type { Format, FormatOptions } from '@sluice/formats'
import { createBatchSlots } from './batch-slots.ts'
import { createCheck } from './check-threads.ts'
import { type Checkpoint, createCheckpoint } from './checkpoint.ts'
import { detectFormats, type FormattedFiles } from './detect-format.ts'
import { createExternalSort } from './external-sort.ts'
import { type Failure, failureOf, TooManyErrors } from './failures.ts'
import { feedEvents } from './feed-events.ts'
import { type Input, openInput, STDIN } from './input.ts'
import { createLedger, emptyTally, type Ledger, type RejectedRecord } from './ledger.ts'
import type { ProgressDisplay, ProgressState } from './progress.ts'
import type { BytesRead } from './read-counted.ts'
import { type ImportEvent, type PiecesSorted, readThreads } from './read-threads.ts'
import { createRejectedFile } from './rejected-file.ts'
import { saveProgress } from './save-progress.ts'
import { createSender } from './send-threads.ts'
import { createShaper } from './shape-thread.ts'
import type { Summary } from './summary.ts'

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
  /** Throws ImportRefused if the target is not known. */
  findTarget: () => Promise<Target>
  /** Aborted with Interrupted when the user ends the import. */
  interrupted: AbortSignal
  /** Aborted when what is in flight must end, too. */
  hurry: AbortSignal
  show: (state: () => ProgressState) => ProgressDisplay
  /** Is called for the first rejected records of a dry run. */
  showRejected: (record: RejectedRecord) => void
}

/** What the summary tells, as far as the import got. */
interface RunState {
  ledger: Ledger
  bytes: BytesRead
  sorted: PiecesSorted
  rejectedPath: string | undefined
  checkpoint: Checkpoint | undefined
}

/** Never throws: the summary says how the import ended. */
export async function runImport(request: ImportRequest, deps: ImportDeps): Promise<Summary> {
  const began = performance.now()
  const state: RunState = {
    ledger: createLedger(emptyTally(), () => {}),
    bytes: { total: 0, done: 0 },
    sorted: { total: 0, done: 0 },
    rejectedPath: undefined,
    checkpoint: undefined,
  }
  const failure = await importAll(request, deps, state).then(() => undefined, failureOf)
  return summaryOf(request, state, failure, (performance.now() - began) / 1_000)
}

function summaryOf(request: ImportRequest, state: RunState, failure: Failure | undefined, seconds: number): Summary {
  const { tally } = state.ledger
  const completed = tally.threads.rejected > 0 ? 'completed_with_rejected' : 'completed'
  return {
    state: failure?.state ?? completed,
    isDryRun: request.isDryRun,
    tally,
    seconds,
    bytes: state.bytes.done,
    ...(failure?.problem !== undefined && { problem: failure.problem }),
    ...(tally.threads.rejected > 0 && state.rejectedPath !== undefined && { rejectedFile: state.rejectedPath }),
    ...(failure !== undefined &&
      tally.events > 0 &&
      state.checkpoint !== undefined && { checkpoint: state.checkpoint.path }),
  }
}

async function importAll(request: ImportRequest, deps: ImportDeps, state: RunState): Promise<void> {
  const stops = createStops(deps)
  using input = await openInput(request.names, { stdin: deps.stdin, stopping: stops.stopping })
  state.bytes = input.progress
  const files = await detectFormats(input.sets, deps.formats, request.format)
  const events = readAll(files, request, state.sorted, stops.stopping)
  if (request.isDryRun) await dryRun(events, request, deps, state, stops)
  else await send(events, request, deps, state, stops, input)
}

async function* readAll(
  files: readonly FormattedFiles[],
  { formatOptions, tempFolder }: ImportRequest,
  sorted: PiecesSorted,
  signal: AbortSignal,
): AsyncGenerator<readonly ImportEvent[]> {
  const openSort = () => createExternalSort({ folder: tempFolder, signal })
  for (const { format, files: some } of files) yield* readThreads(format, some, formatOptions, { openSort, sorted })
}

async function dryRun(
  events: AsyncIterable<readonly ImportEvent[]>,
  { idPrefix, maxErrors }: ImportRequest,
  deps: ImportDeps,
  state: RunState,
  stops: Stops,
): Promise<void> {
  state.ledger = createLedger(emptyTally(), (record) => {
    deps.showRejected(record)
    stops.afterErrors(state.ledger, maxErrors)
  })
  const { ledger } = state
  const display = deps.show(() => ({ bytes: state.bytes, sorted: state.sorted, tally: ledger.tally, concurrency: 0 }))
  try {
    const sink = createCheck(DEFAULT_LIMITS, ledger)
    await feedEvents(events, 0, {
      ledger,
      sink,
      shape: createShaper({ limits: DEFAULT_LIMITS, idPrefix }),
      stopping: stops.stopping,
    })
  } finally {
    display.stop()
  }
}

async function send(
  events: AsyncIterable<readonly ImportEvent[]>,
  request: ImportRequest,
  deps: ImportDeps,
  state: RunState,
  { stopping, hurry, fail, afterErrors }: Stops,
  input: Input,
): Promise<void> {
  const target = await deps.findTarget()
  const client = createClient(target)
  const limits = await client.limits({ signal: hurry })
  const checkpoint = checkpointOf(request, target, input)
  const loaded = await checkpoint?.load()
  const { tally, rejectedBytes } = loaded?.progress ?? { tally: emptyTally(), rejectedBytes: 0 }
  const settled = tally.events
  const rejected = createRejectedFile(request.rejected ?? `${besideInput(request)}.rejected.ndjson`, rejectedBytes)
  const ledger = createLedger(tally, (record) => {
    rejected.add(record)
    afterErrors(ledger, request.maxErrors)
  })
  Object.assign(state, { ledger, checkpoint, rejectedPath: rejected.path })
  const slots = createBatchSlots(request.concurrency, stopping)
  const sink = createSender({ client, slots, ledger, stopping, hurry, fail })
  const saver = saveProgress({ ledger, rejected, checkpoint, fail })
  const display = deps.show(() => ({ bytes: state.bytes, sorted: state.sorted, tally, concurrency: slots.limit() }))
  if (settled > 0) display.say(`Going on where an earlier run of this import stopped (${checkpoint?.path}).`)
  if (loaded?.isOther)
    display.say(`${checkpoint?.path} is of another input, target or options: this import begins anew.`)
  try {
    const shape = createShaper({ limits, idPrefix: request.idPrefix })
    await saver.save()
    await feedEvents(events, settled, { ledger, sink, shape, stopping })
  } finally {
    await sink.flush()
    await saver.stop()
    await saver.save().finally(() => rejected.close())
    display.stop()
  }
  await checkpoint?.remove()
}

function checkpointOf(request: ImportRequest, { url, apiKey }: Target, { fingerprint }: Input): Checkpoint | undefined {
  if (!request.keepsCheckpoint || fingerprint === undefined) return undefined
  const { map, set, ...formatOptions } = request.formatOptions
  const options = [request.format, request.idPrefix, formatOptions, [...map], [...set]]
  const key = createHash('sha256').update(apiKey).digest('base64url')
  return createCheckpoint(`${besideInput(request)}.sluice-checkpoint`, [fingerprint, options, url, key])
}

/** Files beside the input are named after its first part. */
function besideInput({ names }: ImportRequest): string {
  const first = names.find((name) => name !== STDIN)
  return resolve(first ?? 'stdin')
}

/** How long what is in flight may take after an import was stopped. */
const GRACE_MS = 10_000

interface Stops {
  stopping: AbortSignal
  hurry: AbortSignal
  fail: (error: unknown) => void
  /** Stops once too many records were rejected. The ledger counts the last one only after this. */
  afterErrors: (ledger: Ledger, most: number) => void
}

function createStops({ interrupted, hurry }: ImportDeps): Stops {
  const failed = new AbortController()
  const late = new AbortController()
  const stopping = AbortSignal.any([interrupted, failed.signal])
  stopping.addEventListener('abort', () => {
    setTimeout(() => late.abort(stopping.reason), GRACE_MS).unref()
  })
  return {
    stopping,
    hurry: AbortSignal.any([hurry, late.signal]),
    fail: (error) => failed.abort(error),
    afterErrors(ledger, most) {
      if (ledger.tally.threads.rejected < most) return
      failed.abort(new TooManyErrors(`More than ${most} records were rejected. Allow more with --max-errors.`))
    },
  }
}
