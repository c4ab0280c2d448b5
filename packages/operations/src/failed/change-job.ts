// Changes the failed threads of one failed job, so that a retry stores them. The job keeps its place in the order of
// acceptance. What is stored of a thread already stays: two values with one stamp would have no order.
import { createTextParser, DEFAULT_LIMITS, type ParsedText, type Thread } from '@sluice/contract'
import {
  type IngestJob,
  isJobId,
  LANES,
  nameJob,
  type QueueKeys,
  readJob,
  readProgress,
  readTries,
} from '@sluice/queue'
import type { Redis } from 'ioredis'
import type { Operations } from './operations.ts'

const parser = createTextParser(DEFAULT_LIMITS)
const GONE = 'The job is not failed any more, or somebody else has changed it: load its page again.'

/** What an operator sends: the failed threads as JSON, and when the job that the operator saw was changed last. */
export interface JobChange {
  threads: string
  changedAt: string
}

/** Makes the function that changes a job. It returns why it did not; nothing if the job is changed. */
export function createChangeJob(redis: Redis, keys: QueueKeys, operations: Pick<Operations, 'change'>) {
  return async (id: string, { threads: text, changedAt }: JobChange, by: string): Promise<string[]> => {
    for (const lane of isJobId(id) ? LANES : []) {
      const [job, { result }] = await Promise.all([
        readJob(redis, keys.jobs[lane], id),
        readTries(redis, keys.jobs[lane] + id),
      ])
      if (job === undefined || result === undefined) continue
      if (changedAt !== String(readProgress(job.progress).changedAt ?? '')) return [GONE]
      const payload: IngestJob = JSON.parse(job.data)
      const places = [...payload.threads.keys()].filter((at) => !result.receipts[at])
      const parsed = parse(
        text,
        places.flatMap((at) => payload.threads[at] ?? []),
      )
      if ('faults' in parsed) return parsed.faults
      const changed = new Map(places.map((place, at) => [place, parsed.threads[at]]))
      const threads = payload.threads.map((thread, at) => changed.get(at) ?? thread)
      const data = { before: job.data, after: JSON.stringify({ ...payload, threads }) }
      return (await operations.change(lane, id, data, by)) ? [] : [GONE]
    }
    return [GONE]
  }
}

/** Parses changed threads as those of a request. A thread can't become another one. */
function parse(text: string, before: readonly Thread[]): { threads: Thread[] } | { faults: string[] } {
  const parsed = parser.array(Buffer.from(text), { strict: false, maxItems: Number.POSITIVE_INFINITY })
  if (!parsed.ok) return { faults: parsed.errors.map(({ message }) => message) }
  const { elements } = parsed
  if (elements.length !== before.length)
    return { faults: ['The list must have the threads that failed, in their order.'] }
  const faults = elements.flatMap((element, at) =>
    faultsOf(element, before[at]).map((fault) => `Thread ${at + 1}: ${fault}`),
  )
  return faults.length > 0 ? { faults } : { threads: elements.flatMap((one) => (one.ok ? one.thread : [])) }
}

function faultsOf(parsed: ParsedText, before: Thread | undefined): string[] {
  if (!parsed.ok) return parsed.errors.map(({ pointer, message }) => `${pointer} ${message}`)
  const isSame = before !== undefined && nameJob([parsed.thread]) === nameJob([before])
  const unknown = (parsed.warnings ?? []).map(({ message }) => message)
  return isSame ? unknown : ['service and externalId must stay as they are.', ...unknown]
}
