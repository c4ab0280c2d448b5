// Runs an import or a dry run, from its files to its summary.
import { randomUUID } from 'node:crypto'
import { existsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, dirname, resolve } from 'node:path'
import { createClient, type Retry } from '@sluice/client'
import { createThreadParser, DEFAULT_LIMITS } from '@sluice/contract'
import { describeRetry, UserError } from '@sluice/terminal'
import {
  type Checkpoint,
  checkFolder,
  createCheckpoint,
  saveProgress,
} from './account/checkpoint.ts'
import { countThreads, createLedger, emptyTally, type Ledger, type Sink } from './account/ledger.ts'
import { createRejectedFile, rejectedPathOf, touchesInput } from './account/rejected-file.ts'
import { feedEvents } from './feed-events.ts'
import { FORMAT_OPTIONS, optionsOf, readersOf, uselessOption } from './formats/format-options.ts'
import { formats } from './formats/formats.ts'
import { digestOf } from './formats/values/digest.ts'
import { createConversationCounts } from './gather/conversation-counts.ts'
import { createExternalSort } from './gather/external-sort.ts'
import { type Events, readGathered } from './gather/gather-threads.ts'
import type { ImportDeps, ImportOptions, RunState, Stops } from './import-request.ts'
import { createStops, failureOf } from './import-request.ts'
import { type Detected, detectFormats } from './input/detect-format.ts'
import { type Input, openInput, STDIN } from './input/input.ts'
import { createInputCounts, type InputCounts } from './input-counts.ts'
import { createSender } from './send/send-threads.ts'
import { createShaper } from './shape/shape-thread.ts'
import { sayWhyItWaits } from './show/say-why.ts'
import type { State, Summary } from './show/summary.ts'

/** Runs an import. Never throws, because the summary says how the import ended. */
export async function runImport(request: ImportOptions, deps: ImportDeps): Promise<Summary> {
  const began = performance.now()
  const state: RunState = {
    tally: emptyTally(),
    bytes: { total: 0, done: 0 },
    sorted: { total: 0, done: 0 },
  }
  const run = { request, deps, state, stops: createStops(deps) }
  const failure = await importAll(run).then(() => undefined, failureOf)
  const { tally } = state
  const path = state.checkpoint?.path ?? ''
  return {
    state: failure?.state ?? completedState(state),
    isDryRun: request.dryRun === true,
    tally,
    inputs: state.counts?.inputs ?? [],
    unread: state.counts?.unread ?? [],
    conversations: state.conversations?.counts,
    seconds: (performance.now() - began) / 1_000,
    bytes: state.bytes.done,
    threadsBefore: state.threadsBefore,
    problem: failure?.problem,
    lacking: failure?.lacking,
    rejectedFile: tally.threads.rejected > 0 ? state.rejectedPath : undefined,
    checkpoint: failure !== undefined && tally.events > 0 && existsSync(path) ? path : undefined,
  }
}

/** Returns the state of an import that did not fail. An input without records is also complete. */
function completedState({ tally, counts }: RunState): State {
  if (tally.threads.rejected > 0) return 'completed_with_rejected'
  if (counts !== undefined && counts.unread.length > 0) return 'completed_with_unread'
  return countThreads(tally) > 0 || Object.keys(tally.notes.skipped).length === 0
    ? 'completed'
    : 'completed_without_threads'
}

/** What the steps of an import share. */
interface Run {
  request: ImportOptions
  deps: ImportDeps
  state: RunState
  stops: Stops
}

async function importAll(run: Run): Promise<void> {
  const { request, deps, state, stops } = run
  const { encoding, stateDir, tempDir, rejected } = request
  // If the file exists, its folder need not be writable: /dev/null, for example, is in a folder of
  // devices. The default folder for sorting is not checked, because not all inputs use it.
  const ofRejected = rejected === undefined || existsSync(rejected) ? undefined : dirname(rejected)
  for (const folder of [stateDir, ofRejected, tempDir === tmpdir() ? undefined : tempDir])
    if (folder !== undefined) await checkFolder(folder)
  using input = await openInput(request.names, {
    stdin: deps.stdin,
    stopping: stops.stopping,
    encoding,
  })
  state.bytes = input.progress
  const detected = await detectFormats(input.sets, formats, request.format, request)
  refuseUseless(request, detected)
  const counts = createInputCounts(detected)
  state.counts = counts
  const { verbose, dryRun } = request
  if (verbose || dryRun)
    state.conversations = createConversationCounts(
      SHOWN_CONVERSATIONS[verbose ? 'verbose' : 'dryRun'],
    )
  const events = readAll(input, detected, counts, run)
  if (request.dryRun) await checkImport(events, run)
  else await sendImport(events, input, run)
}

/** Throws UserError if no format reads an option, which would be ignored without a message. */
function refuseUseless(request: ImportOptions, { read, lacking }: Detected): void {
  const found = [...read.map(({ format }) => format), ...lacking]
  const useless = uselessOption(found, request)
  if (useless === undefined) return
  const [flag] = FORMAT_OPTIONS[useless].flags.split(' ')
  const names = [...new Set(found.map(({ name }) => name))].join(', ')
  throw new UserError(
    `${flag} does not apply to ${names}. These formats read it: ${readersOf(useless, formats)}.`,
  )
}

/** Each conversation in the summary costs memory for the names of at most 1,000 speakers. */
const SHOWN_CONVERSATIONS = { dryRun: 50, verbose: 1_000 }

async function* readAll(
  input: Input,
  { read, notes }: Detected,
  counts: InputCounts,
  { request, state, stops }: Run,
): Events {
  const { sorted } = state
  const openSort = () => createExternalSort({ folder: request.tempDir, signal: stops.stopping })
  const { idPrefix } = request
  yield [...input.notOpened, ...notes]
  for (const group of read) {
    const { format, files } = group
    const ofRecord = { format: format.name, ...(idPrefix && { idPrefix }) }
    const counted = counts.of(group)
    const reading = readGathered(
      { ...format, read: counted.read },
      files,
      optionsOf(format, request),
      { openSort, sorted },
    )
    for await (const list of reading) {
      counted.addThreads(list)
      yield list.map((event) => (event.kind === 'rejected' ? { ...ofRecord, ...event } : event))
    }
  }
}

/** Checks what was read with the API's parser, without a service, for `--dry-run`. */
async function checkImport(events: Events, { request, deps, state, stops }: Run): Promise<void> {
  const ledger = createLedger(state.tally, (record) => {
    deps.showRejected(record)
    stops.afterErrors(state.tally, request.maxErrors)
  })
  using _display = deps.show(() => state)
  const shape = createShaper({ limits: DEFAULT_LIMITS, idPrefix: request.idPrefix })
  const { stopping } = stops
  const { conversations } = state
  await feedEvents(events, { ledger, sink: createCheck(ledger), shape, conversations, stopping })
}

/** Stands for a title that the input lacks, because the service may have stored one. */
const SOME_TITLE = 'Untitled'

function createCheck(ledger: Ledger): Sink {
  const parse = createThreadParser(DEFAULT_LIMITS)
  return {
    add({ request, placeholderTitle, place, entry }) {
      const parsed = parse(
        { ...request, title: request.title ?? placeholderTitle ?? SOME_TITLE },
        { strict: false },
      )
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

/** Sends all threads. Resolves when each is stored or rejected. */
async function sendImport(
  events: Events,
  input: Input,
  { request, deps, state, stops }: Run,
): Promise<void> {
  const { stopping, hurry, fail, afterErrors, refuseAfterErrors } = stops
  const target = await deps.findTarget()
  // Few retries, so that a wrong URL does not look like a service that is unavailable for a while.
  const limits = await createClient({ ...target, maxRetries: FIRST_RETRIES }).limits({
    signal: hurry,
  })
  // Only time bounds the attempts, because batches compete for room in a full queue, and one may
  // lose many times.
  const client = createClient({ ...target, maxRetries: Number.POSITIVE_INFINITY })
  // If the key is not known, this request fails now, rather than another one after an hour of
  // sorting.
  await client.getSource({ service: 'custom', externalId: 'none' }, { limit: 1, signal: hurry })
  // The tenant and not the key, so that the import can continue with another key after the key was
  // revoked.
  const owner = limits.tenant ?? digestOf(target.apiKey)
  const checkpoint = checkpointOf(request, [target.url, owner], input)
  const loaded = await checkpoint?.load()
  const { tally, rejectedBytes } = loaded?.progress ?? { tally: emptyTally(), rejectedBytes: 0 }
  const settled = tally.events
  const rejected = createRejectedFile(rejectedPath(request), rejectedBytes)
  const ledger = createLedger(tally, (record) => {
    rejected.add(record)
    afterErrors(tally, request.maxErrors)
  })
  state.tally = tally
  if (checkpoint !== undefined) state.checkpoint = checkpoint
  state.rejectedPath = rejected.path
  refuseAfterErrors(tally, request.maxErrors)
  if (settled > 0) state.threadsBefore = countThreads(tally)
  const saver = saveProgress({ ledger, rejected, checkpoint, fail })
  using display = deps.show(() => state)
  const onRetry = createRetryNotes(display.say)
  const importId = randomUUID()
  using _why = sayWhyItWaits({
    client,
    importId,
    settled: () => countThreads(tally),
    say: display.say,
  })
  const sink = createSender({
    importId,
    client,
    concurrency: request.concurrency,
    ledger,
    stopping,
    hurry,
    onRetry,
    fail,
  })
  if (settled > 0)
    display.say(`Going on where an earlier run of this import stopped (${checkpoint?.path}).`)
  if (loaded?.isOther)
    display.say(
      `${checkpoint?.path} is of another input, target or options: this import starts over.`,
    )
  try {
    const shape = createShaper({ limits, idPrefix: request.idPrefix })
    await saver.save()
    const { conversations } = state
    await feedEvents(events, { ledger, sink, shape, conversations, stopping })
  } finally {
    await sink.flush().finally(saver.end)
  }
  await checkpoint?.remove()
}

/** Options that change neither an input's events nor their meaning. `map` and `set` are maps. */
const WITHOUT_MEANING =
  'names checkpoint rejected stateDir maxErrors concurrency tempDir verbose map set'.split(' ')

function checkpointOf(
  request: ImportOptions,
  target: readonly string[],
  { fingerprint }: Input,
): Checkpoint | undefined {
  const { checkpoint, map, set } = request
  if (!checkpoint || fingerprint === undefined) return undefined
  const options = Object.fromEntries(
    Object.entries(request).filter(([name]) => !WITHOUT_MEANING.includes(name)),
  )
  const meaning = [fingerprint, options, [...map], [...set], ...target]
  return createCheckpoint(`${besideInput(request)}.sluice-checkpoint`, meaning)
}

/** Checkpoint and rejected file are named after the first input that is not standard input. */
function besideInput({ names, stateDir }: ImportOptions): string {
  const first = names.find((name) => name !== STDIN) ?? 'stdin'
  return stateDir === undefined ? resolve(first) : resolve(stateDir, basename(first))
}

function rejectedPath(request: ImportOptions): string {
  const inputs = new Set(
    request.names.filter((name) => name !== STDIN).map((name) => resolve(name)),
  )
  if (request.rejected === undefined) return rejectedPathOf(besideInput(request), inputs)
  if (!touchesInput(resolve(request.rejected), inputs)) return request.rejected
  throw new UserError('--rejected names a file that is imported. Name another file.')
}

/** The retries of the first request. Later requests are sent again for minutes. */
const FIRST_RETRIES = 2

/** The shortest time between two notes that the service is busy. */
const RETRY_NOTE_MS = 5_000

function createRetryNotes(say: (line: string) => void): (retry: Retry) => void {
  let lastAt = Number.NEGATIVE_INFINITY
  return (retry) => {
    if (performance.now() - lastAt < RETRY_NOTE_MS) return
    lastAt = performance.now()
    say(describeRetry(retry))
  }
}
