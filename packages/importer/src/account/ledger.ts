// Counts what happens to the events of an import. They are counted in the order of the input, so
// that a checkpoint covers all events before it.
import { EventEmitter, once } from 'node:events'
import type { ThreadRequest } from '@sluice/contract'
import type { Noted, Place, Rejected } from '../formats/format.ts'

/** A thread's outcome is the first of this list that any of its parts has. */
const OUTCOMES = ['created', 'updated', 'unchanged'] as const
type Outcome = (typeof OUTCOMES)[number]

export interface Tally {
  /** Settled events, from the first one up to the first that is not settled. */
  events: number
  threads: Record<Outcome | 'rejected', number>
  quotes: Record<Outcome, number>
  /** What a dry run found valid. */
  checked: { threads: number; quotes: number }
  /** How often something was doubtful, skipped, cut or replaced, or caused a warning, by reason. */
  notes: Record<Noted['kind'], Record<string, number>>
  reasons: Record<string, number>
}

/** A record that was not stored. It is written to the file of rejected records. */
export type RejectedRecord = Omit<Rejected, 'kind'>

export function emptyTally(): Tally {
  return {
    events: 0,
    threads: { created: 0, updated: 0, unchanged: 0, rejected: 0 },
    quotes: { created: 0, updated: 0, unchanged: 0 },
    checked: { threads: 0, quotes: 0 },
    notes: { warning: {}, doubtful: {}, skipped: {}, cut: {}, replaced: {} },
    reasons: {},
  }
}

/** How many threads were stored, rejected or checked. */
export function countThreads({ threads, checked }: Tally): number {
  return threads.created + threads.updated + threads.unchanged + threads.rejected + checked.threads
}

/** What was read of an input that the user named. */
export interface InputCount {
  name: string
  format: string
  /** The records that are part of threads, or that were rejected. */
  records: number
  threads: number
}

/** A file that no format recognises, and advice how to import it. */
export interface UnreadFile {
  name: string
  advice: string
}

/** An event of the input, until all of its requests are settled. */
export interface Entry {
  /** The number of requests without a result, and one more while the event is being read. */
  open: number
  /** In a dry run, the number of quotes of a valid thread. */
  checkedQuotes?: number
  outcomes: { outcome: Outcome; quotes: Record<Outcome, number> }[]
  notes: [kind: Noted['kind'], reason: string][]
  rejected: RejectedRecord[]
}

/** Counts a value that was left out, cut or replaced. */
export type Note = (kind: Noted['kind'], reason: string) => void

/** A request. Its title may be unknown until the stored sources are looked up. */
export type UntitledRequest = Omit<ThreadRequest, 'title'> & { title?: string }

export interface Outgoing {
  request: UntitledRequest
  /** The title to use if the request has none and none is stored. */
  placeholderTitle?: string | undefined
  /**
   * The ids of a conversation's mails. After the look-up, only the ids that are stored sources. The
   * conversation's requests share this object.
   */
  conversation?: { ids: readonly string[] } | undefined
  place: Place
  entry: Entry
}

/** Sends or checks requests. */
export interface Sink {
  /** Adds a request. If the caller must wait before it adds more, returns a promise. */
  add(outgoing: Outgoing): Promise<void> | undefined
  flush(): Promise<void>
}

export type Ledger = ReturnType<typeof createLedger>

/** At most this number of reasons is counted separately, because a reason may contain data. */
const NAMED_REASONS = 200
const OTHER_REASONS = 'for other reasons'

/** Continues the tally of an earlier run. Passes on rejected records in the input's order. */
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
    for (const { quotes } of outcomes)
      for (const outcome of OUTCOMES) tally.quotes[outcome] += quotes[outcome]
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
    /** Notes that a request of the entry is settled, or that the event has been read. */
    close(entry: Entry) {
      entry.open -= 1
      if (entry === entries[0] && entry.open === 0) advance()
    },
    /**
     * Resolves when at most this number of events wait for an earlier one. Throws the signal's
     * reason.
     */
    async untilAtMost(most: number, signal: AbortSignal) {
      while (entries.length > most) {
        await once(advances, 'advance', { signal }).catch(() => signal.throwIfAborted())
      }
    },
  }
}

/** Removes what differs from record to record: the pointer in front, all after a colon, the job. */
function generalReason(reason: string): string {
  const [text = ''] = reason.replace(/^\/\S*: /, '').split(/: | Its job is /)
  return text
}

function count(reasons: Record<string, number>, reason: string): void {
  const known = Object.hasOwn(reasons, reason) || Object.keys(reasons).length < NAMED_REASONS
  const name = known ? reason : OTHER_REASONS
  reasons[name] = (Object.hasOwn(reasons, name) ? (reasons[name] ?? 0) : 0) + 1
}
