// Sends what was read, and keeps account of it so that another run can go on.
import { hash } from 'node:crypto'
import { basename, resolve } from 'node:path'
import { createClient, type Retry } from '@sluice/client'
import type { Target } from '@sluice/terminal'
import { describeSeconds, UserError } from '@sluice/terminal'
import { type Checkpoint, createCheckpoint, saveProgress } from './account/checkpoint.ts'
import { createLedger, emptyTally, threadsIn } from './account/ledger.ts'
import { createRejectedFile, rejectedPathOf, touchesInput } from './account/rejected-file.ts'
import { feedEvents } from './feed-events.ts'
import type { ImportEvent } from './gather/gather-threads.ts'
import type { ImportDeps, ImportRequest, RunState, Stops } from './import-request.ts'
import { type Input, STDIN } from './input/input.ts'
import { createSender } from './send/send-threads.ts'
import { createShaper } from './shape/shape-thread.ts'

/** Resolves when everything is stored or rejected. */
export async function sendImport(
  events: AsyncIterable<readonly ImportEvent[]>,
  request: ImportRequest,
  deps: ImportDeps,
  state: RunState,
  { stopping, hurry, fail, afterErrors }: Stops,
  input: Input,
): Promise<void> {
  const target = await deps.findTarget()
  // A wrong URL must not look like a service that is away for a while.
  const limits = await createClient({ ...target, maxRetries: FIRST_RETRIES }).limits({ signal: hurry })
  // Batches compete for the room of a full queue, so that time alone bounds their tries.
  const client = createClient({ ...target, maxRetries: Number.POSITIVE_INFINITY })
  // A key that is not known fails here, and not after an hour of sorting.
  await client.getSource({ service: 'custom', externalId: 'none' }, { limit: 1, signal: hurry })
  const checkpoint = checkpointOf(request, target, input)
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
  if (settled > 0) state.threadsBefore = threadsIn(tally)
  const saver = saveProgress({ ledger, rejected, checkpoint, fail })
  using display = deps.show(() => state)
  const onRetry = createRetryNotes(display.say)
  const sink = createSender({ client, concurrency: request.concurrency, ledger, stopping, hurry, onRetry, fail })
  if (settled > 0) display.say(`Going on where an earlier run of this import stopped (${checkpoint?.path}).`)
  if (loaded?.isOther)
    display.say(`${checkpoint?.path} is of another input, target or options: this import begins anew.`)
  try {
    const shape = createShaper({ limits, idPrefix: request.idPrefix })
    await saver.save()
    await feedEvents(events, { ledger, sink, shape, stopping })
  } finally {
    await sink.flush().finally(saver.end)
  }
  await checkpoint?.remove()
}

function checkpointOf(request: ImportRequest, { url, apiKey }: Target, { fingerprint }: Input): Checkpoint | undefined {
  const { names, checkpoint, rejected, stateDir, maxErrors, concurrency, tempDir, map, set, ...options } = request
  if (!checkpoint || fingerprint === undefined) return undefined
  const key = hash('sha256', apiKey, 'base64url')
  const meaning = [fingerprint, options, [...map], [...set], url, key]
  return createCheckpoint(`${besideInput(request)}.sluice-checkpoint`, meaning)
}

/** The files that an import writes are named after the first part of its input. */
function besideInput({ names, stateDir }: ImportRequest): string {
  const first = names.find((name) => name !== STDIN) ?? 'stdin'
  return stateDir === undefined ? resolve(first) : resolve(stateDir, basename(first))
}

function rejectedPath(request: ImportRequest): string {
  const inputs = new Set(request.names.filter((name) => name !== STDIN).map((name) => resolve(name)))
  if (request.rejected === undefined) return rejectedPathOf(besideInput(request), inputs)
  if (!touchesInput(resolve(request.rejected), inputs)) return request.rejected
  throw new UserError('--rejected names a file that is imported. Name another file.')
}

/** Tries to reach the service before anything is sent. Later it is tried for minutes. */
const FIRST_RETRIES = 2

/** The least time between two notes that the service is busy. */
const RETRY_NOTE_MS = 5_000

function createRetryNotes(say: (line: string) => void): (retry: Retry) => void {
  let lastAt = Number.NEGATIVE_INFINITY
  return ({ cause, delayMs }) => {
    if (performance.now() - lastAt < RETRY_NOTE_MS) return
    lastAt = performance.now()
    say(`${cause.message} Trying again in ${describeSeconds(delayMs / 1_000)}.`)
  }
}
