// Runs an import from its files to its summary.
import { existsSync } from 'node:fs'
import { formats, skipped } from '@sluice/formats'
import { emptyTally, type Tally, threadsIn } from './account/ledger.ts'
import { checkImport } from './check-import.ts'
import { failureOf } from './failures.ts'
import { createExternalSort } from './gather/external-sort.ts'
import { type ImportEvent, type PiecesSorted, readThreads } from './gather/gather-threads.ts'
import { createStops, type ImportDeps, type ImportRequest, type RunState } from './import-request.ts'
import { detectFormats, type FormattedFiles } from './input/detect-format.ts'
import { type Input, openInput } from './input/input.ts'
import { sendImport } from './send-import.ts'
import type { State, Summary } from './show/summary.ts'

/** Never throws: the summary says how the import ended. */
export async function runImport(request: ImportRequest, deps: ImportDeps): Promise<Summary> {
  const began = performance.now()
  const state: RunState = {
    tally: emptyTally(),
    bytes: { total: 0, done: 0 },
    sorted: { total: 0, done: 0 },
  }
  const failure = await importAll(request, deps, state).then(() => undefined, failureOf)
  const { tally } = state
  const path = state.checkpoint?.path ?? ''
  return {
    state: failure?.state ?? completedState(tally),
    isDryRun: request.dryRun === true,
    tally,
    seconds: (performance.now() - began) / 1_000,
    bytes: state.bytes.done,
    threadsBefore: state.threadsBefore,
    problem: failure?.problem,
    rejectedFile: tally.threads.rejected > 0 ? state.rejectedPath : undefined,
    checkpoint: failure !== undefined && tally.events > 0 && existsSync(path) ? path : undefined,
  }
}

/** An unchanged import has threads, and an input without any record has nothing that was skipped. */
function completedState(tally: Tally): State {
  if (tally.threads.rejected > 0) return 'completed_with_rejected'
  const hasThreads = threadsIn(tally) + tally.checked.threads > 0
  return hasThreads || Object.keys(tally.notes.skipped).length === 0 ? 'completed' : 'completed_without_threads'
}

async function importAll(request: ImportRequest, deps: ImportDeps, state: RunState): Promise<void> {
  const stops = createStops(deps)
  const { encoding } = request
  using input = await openInput(request.names, { stdin: deps.stdin, stopping: stops.stopping, encoding })
  state.bytes = input.progress
  const files = await detectFormats(input.sets, formats, request.format)
  const events = readAll(input, files, request, state.sorted, stops.stopping)
  if (request.dryRun) await checkImport(events, request, deps, state, stops)
  else await sendImport(events, request, deps, state, stops, input)
}

const NOT_OPENED = 'archives that were not opened (unpack each, and import it by itself)'

async function* readAll(
  { archives }: Input,
  files: readonly FormattedFiles[],
  request: ImportRequest,
  sorted: PiecesSorted,
  signal: AbortSignal,
): AsyncGenerator<readonly ImportEvent[]> {
  const openSort = () => createExternalSort({ folder: request.tempDir, signal })
  const { idPrefix } = request
  yield archives.map((path) => skipped(NOT_OPENED, { path }))
  for (const { format, files: some } of files) {
    const ofRecord = { format: format.name, ...(idPrefix && { idPrefix }) }
    for await (const list of readThreads(format, some, request, { openSort, sorted }))
      yield list.map((event) => (event.kind === 'rejected' ? { ...ofRecord, ...event } : event))
  }
}
