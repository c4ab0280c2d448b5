// Keeps account of an import: its events count in the order of the input, so that a checkpoint covers all before it.
import { EventEmitter, once } from 'node:events'
import type { ThreadRequest } from '@sluice/contract'
import type { Noted, Place, Rejected } from '../formats/format.ts'

/** The first one that a part of a thread has is the outcome of the thread. */
const OUTCOMES = ['created', 'updated', 'unchanged'] as const
type Outcome = (typeof OUTCOMES)[number]

export interface Tally {
  /** Events that are settled, and before which all are. */
  events: number
  threads: Record<Outcome | 'rejected', number>
  quotes: Record<Outcome, number>
  /** Valid in a dry run. */
  checked: { threads: number; quotes: number }
  /** Everything skipped, cut or replaced, and warnings, by reason. */
  notes: Record<Noted['kind'], Record<string, number>>
  /** Rejected records by reason. */
  reasons: Record<string, number>
}

/** A record that was not stored, for the file of rejected records. */
export type RejectedRecord = Omit<Rejected, 'kind'>

export function emptyTally(): Tally {
  return {
    events: 0,
    threads: { created: 0, updated: 0, unchanged: 0, rejected: 0 },
    quotes: { created: 0, updated: 0, unchanged: 0 },
    checked: { threads: 0, quotes: 0 },
    notes: { warning: {}, skipped: {}, cut: {}, replaced: {} },
    reasons: {},
  }
}

/** How many threads were stored, rejected or checked. */
export function threadsIn({ threads, checked }: Tally): number {
  return threads.created + threads.updated + threads.unchanged + threads.rejected + checked.threads
}

/** One event of the input, until all of its requests are settled. */
export interface Entry {
  /** Requests without a result, and one more until the event is read. */
  open: number
  /** The quotes of a valid thread that is not sent. */
  checkedQuotes?: number
  outcomes: { outcome: Outcome; quotes: Record<Outcome, number> }[]
  notes: [kind: Noted['kind'], reason: string][]
  rejected: RejectedRecord[]
}

/** Counts a value that was left out, cut or replaced. */
export type Note = (kind: Noted['kind'], reason: string) => void

/** A request whose title is perhaps not known yet. */
export type UntitledRequest = Omit<ThreadRequest, 'title'> & { title?: string }

export interface Outgoing {
  request: UntitledRequest
  /** The title, if the request has none and none is stored. */
  placeholderTitle?: string | undefined
  /** The ids of a conversation's mails. Once looked up, those that are stored sources: its requests share the object. */
  conversation?: { ids: readonly string[] } | undefined
  place: Place
  entry: Entry
}

/** Sends or checks requests. */
export interface Sink {
  /** Returns a promise if the caller has to wait before it adds more. */
  add(outgoing: Outgoing): Promise<void> | undefined
  /** Resolves when everything that was added is settled. */
  flush(): Promise<void>
}

export type Ledger = ReturnType<typeof createLedger>

/** Reasons are counted one by one up to this number. */
const NAMED_REASONS = 200
const OTHER_REASONS = 'for other reasons'

/**
 * @param tally of the run that this one continues.
 * @param onRejected is called for each rejected record in the order of the input.
 */
export function createLedger(tally: Tally, onRejected: (rejected: RejectedRecord) => void) {
  const entries: Entry[] = []
  const advances = new EventEmitter()

  function advance(): void {
    for (let entry = entries[0]; entry?.open === 0; entry = entries[0]) {
      entries.shift()
      settle(entry)
    }
    advances.emit('advance')
  }

  function settle({ outcomes, notes, rejected, checkedQuotes }: Entry): void {
    tally.events += 1
    for (const [kind, reason] of notes) count(tally.notes[kind], reason)
    for (const { quotes } of outcomes) for (const outcome of OUTCOMES) tally.quotes[outcome] += quotes[outcome]
    for (const record of rejected) {
      count(tally.reasons, generalReason(record.reason))
      onRejected(record)
    }
    const ofParts = OUTCOMES.find((each) => outcomes.some(({ outcome }) => outcome === each))
    const result = rejected.length > 0 ? 'rejected' : ofParts
    if (result !== undefined) tally.threads[result] += 1
    else if (checkedQuotes !== undefined) {
      tally.checked.threads += 1
      tally.checked.quotes += checkedQuotes
    }
  }

  return {
    tally,
    open(): Entry {
      const entry: Entry = { open: 1, outcomes: [], notes: [], rejected: [] }
      entries.push(entry)
      return entry
    },
    /** One request of the entry, or its reading, is settled. */
    close(entry: Entry) {
      entry.open -= 1
      if (entry === entries[0] && entry.open === 0) advance()
    },
    /** Resolves once at most this number of events wait for an earlier one. Throws the signal's reason. */
    async untilAtMost(most: number, signal: AbortSignal) {
      while (entries.length > most) {
        await once(advances, 'advance', { signal }).catch(() => signal.throwIfAborted())
      }
    },
  }
}

/** A reason without what belongs to one record: the pointer before it, the value behind its last colon, and the job. */
function generalReason(reason: string): string {
  const [text = ''] = reason.replace(/^\/\S*: /, '').split(/: | Its job is /)
  return text
}

function count(reasons: Record<string, number>, reason: string): void {
  const known = Object.hasOwn(reasons, reason) || Object.keys(reasons).length < NAMED_REASONS
  const name = known ? reason : OTHER_REASONS
  reasons[name] = (Object.hasOwn(reasons, name) ? (reasons[name] ?? 0) : 0) + 1
}
