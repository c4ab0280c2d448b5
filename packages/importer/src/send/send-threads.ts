// Sends requests in batches, several at a time, and records the outcome of each.
import { type Client, type ItemResult, isFinal, type Retry } from '@sluice/client'
import { UserError } from '@sluice/terminal'
import type { Ledger, Outgoing, Sink, UntitledRequest } from '../account/ledger.ts'
import { type CompleteRequest, completeRequests, type InFlight } from './complete-requests.ts'

/**
 * A batch has at most BATCH_THREADS threads, and about BATCH_UNITS code units of text, unless a
 * single thread has more.
 */
const BATCH_THREADS = 500
const BATCH_UNITS = 1024 * 1024
/** If the input is slow, a batch that is not full is sent after this time. */
const LINGER_MS = 200

interface SendDeps {
  importId: string
  client: Pick<Client, 'postBatch' | 'lookUpSources' | 'getSource'>
  /** At most this number of batches is in flight, including batches that wait to be sent again. */
  concurrency: number
  ledger: Ledger
  /** When this is aborted, nothing new is sent. */
  stopping: AbortSignal
  /** When this is aborted, requests in flight end. */
  hurry: AbortSignal
  onRetry: (retry: Retry) => void
  /** Ends the import: requests in flight are completed, but nothing new is sent. */
  fail: (error: unknown) => void
}

/** Posts batches. The client keeps the order of requests for the same source. */
export function createSender({
  importId,
  client,
  concurrency,
  ledger,
  stopping,
  hurry,
  onRetry,
  fail,
}: SendDeps): Sink {
  const inFlight: InFlight = new Map()
  let batch: Outgoing[] = []
  let units = 0
  let linger: NodeJS.Timeout | undefined
  /** Resolves when the last batch has begun. Batches begin in the order of the input. */
  let begun = Promise.resolve()

  function dispatch(): Promise<void> {
    clearTimeout(linger)
    const outgoing = batch
    batch = []
    units = 0
    begun = begun.then(() => begin(outgoing))
    // Handle the failure here: while the input (such as a pipe) is silent, nothing awaits this
    // batch.
    begun.catch(fail)
    return begun
  }

  async function begin(outgoing: readonly Outgoing[]): Promise<void> {
    while (inFlight.size >= concurrency) await Promise.race(inFlight.keys())
    stopping.throwIfAborted()
    const requests = await completeRequests(outgoing, inFlight, { client, signal: hurry })
    const sending = send(requests).finally(() => inFlight.delete(sending))
    inFlight.set(sending, requests)
  }

  async function send(requests: readonly CompleteRequest[]): Promise<void> {
    try {
      const threads = requests.map(({ request }) => request)
      const results = await client.postBatch(threads, { importId, signal: hurry, onRetry })
      for (const [index, one] of requests.entries()) recordResult(one, results[index], ledger)
    } catch (error) {
      fail(error)
    }
  }

  return {
    add(outgoing) {
      stopping.throwIfAborted()
      batch.push(outgoing)
      units += unitsOf(outgoing.request)
      if (batch.length >= BATCH_THREADS || units >= BATCH_UNITS) return dispatch()
      if (batch.length === 1) linger = setTimeout(dispatch, LINGER_MS)
      return undefined
    },
    async flush() {
      if (batch.length > 0 && !stopping.aborted) dispatch()
      clearTimeout(linger)
      // A failure has aborted `stopping`. The run reports its reason.
      await begun.catch(() => {})
      await Promise.all(inFlight.keys())
    },
  }
}

function recordResult(
  { request, place, entry }: CompleteRequest,
  result: ItemResult | undefined,
  ledger: Ledger,
) {
  if (result === undefined) throw new Error('The client gave no result for a thread.')
  if (result.problem === undefined) {
    // What was deleted later is neither new nor changed.
    const outcome = result.outcome === 'deleted' ? 'unchanged' : result.outcome
    entry.outcomes.push({ ...result, outcome })
    for (let count = result.quotes.suppressed ?? 0; count > 0; count--)
      entry.notes.push(['replaced', 'messages of suppressed speakers, by [erased]'])
  } else if (isFinal(result)) {
    entry.rejected.push({ reason: reasonOf(result), place, record: request })
  } else {
    // The client has used up its retries.
    throw new UserError(`The service could not take a thread in time: ${result.problem.detail}`)
  }
  ledger.close(entry)
}

function reasonOf({ problem }: ItemResult): string {
  const errors = problem?.errors?.map(({ pointer, message }) => `${pointer}: ${message}`) ?? []
  const job = problem?.jobId === undefined ? [] : [`Its job is ${problem.jobId}.`]
  return [...(errors.length > 0 ? errors : [problem?.detail]), ...job].join(' ')
}

function unitsOf({ quotes }: UntitledRequest): number {
  return quotes.reduce((units, { text }) => units + text.length + 200, 200)
}
