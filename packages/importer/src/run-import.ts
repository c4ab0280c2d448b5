// Runs an import, or a check of one, from its files to its summary.
import { existsSync } from 'node:fs'
import { createThreadParser, DEFAULT_LIMITS } from '@sluice/contract'
import { createLedger, emptyTally, type Ledger, type Sink, type Tally, threadsIn } from './account/ledger.ts'
import { feedEvents } from './feed-events.ts'
import { formats } from './formats/formats.ts'
import { createExternalSort } from './gather/external-sort.ts'
import { type ImportEvent, readThreads } from './gather/gather-threads.ts'
import type { ImportDeps, ImportRequest, RunState, Stops } from './import-request.ts'
import { createStops, failureOf } from './import-request.ts'
import { detectFormats, type FormattedFiles } from './input/detect-format.ts'
import { type Input, openInput } from './input/input.ts'
import type { Done } from './input/read-counted.ts'
import { sendImport } from './send-import.ts'
import { createShaper } from './shape/shape-thread.ts'
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
  return threadsIn(tally) > 0 || Object.keys(tally.notes.skipped).length === 0
    ? 'completed'
    : 'completed_without_threads'
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

async function* readAll(
  { notOpened }: Input,
  files: readonly FormattedFiles[],
  request: ImportRequest,
  sorted: Done,
  signal: AbortSignal,
): AsyncGenerator<readonly ImportEvent[]> {
  const openSort = () => createExternalSort({ folder: request.tempDir, signal })
  const { idPrefix } = request
  yield notOpened
  for (const { format, files: some } of files) {
    const ofRecord = { format: format.name, ...(idPrefix && { idPrefix }) }
    for await (const list of readThreads(format, some, request, { openSort, sorted }))
      yield list.map((event) => (event.kind === 'rejected' ? { ...ofRecord, ...event } : event))
  }
}

/** What `--dry-run` does instead of sending: checks what was read with the parser of the API, without a service. */
async function checkImport(
  events: AsyncIterable<readonly ImportEvent[]>,
  { idPrefix, maxErrors }: ImportRequest,
  deps: ImportDeps,
  state: RunState,
  { stopping, afterErrors }: Stops,
): Promise<void> {
  const { tally } = state
  const ledger = createLedger(tally, (record) => {
    deps.showRejected(record)
    afterErrors(tally, maxErrors)
  })
  using _display = deps.show(() => state)
  const shape = createShaper({ limits: DEFAULT_LIMITS, idPrefix })
  await feedEvents(events, { ledger, sink: createCheck(ledger), shape, stopping })
}

/** A thread whose title only the service may know is checked with this one. */
const SOME_TITLE = 'Untitled'

/** A sink that sends nothing. */
function createCheck(ledger: Ledger): Sink {
  const parse = createThreadParser(DEFAULT_LIMITS)
  return {
    add({ request, placeholderTitle, place, entry }) {
      const parsed = parse({ ...request, title: request.title ?? placeholderTitle ?? SOME_TITLE }, { strict: false })
      if (!parsed.ok) {
        const [first] = parsed.errors
        const pointer = `${place.pointer ?? ''}${first?.pointer ?? ''}`
        const reason = parsed.errors.map(({ message }) => message).join(' ')
        entry.rejected.push({ reason, place: { ...place, pointer }, record: request })
      } else {
        // The parser merges copies of a message, as the API does.
        entry.checkedQuotes = (entry.checkedQuotes ?? 0) + parsed.thread.quotes.length
      }
      ledger.close(entry)
      return undefined
    },
    flush: async () => {},
  }
}
