// Keeps account of an import: the effects of its events count in the order of the input, so that a checkpoint covers exactly the events before it.
import type { Noted, Rejected } from '@sluice/formats'

export type Outcome = 'created' | 'updated' | 'unchanged'

/** What became of the events so far. */
export interface Tally {
  /** Events that are settled, and before which all are. */
  events: number
  threads: Record<Outcome | 'rejected', number>
  quotes: Record<Outcome, number>
  /** What a dry run found to be valid. */
  checked: { threads: number; quotes: number }
  /** Everything skipped, cut or replaced, and warnings, by reason. */
  notes: Record<Noted['kind'], Record<string, number>>
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
  }
}

/** How many threads were stored or rejected. */
export function threadsIn({ threads }: Tally): number {
  return threads.created + threads.updated + threads.unchanged + threads.rejected
}

/** One event of the input, until all that follows from it is settled. */
export interface Entry {
  /** Requests without a result, and one more until `close`. */
  open: number
  /** The quotes of a valid thread that is not sent. */
  checkedQuotes?: number
  outcomes: { outcome: Outcome; quotes: Record<Outcome, number> }[]
  notes: [kind: Noted['kind'], reason: string][]
  rejected: RejectedRecord[]
}

export interface Ledger {
  readonly tally: Tally
  /** How many events are not settled, or come after one that is not. */
  waiting(): number
  open(): Entry
  /** One request of the entry, or its reading, is settled. */
  close(entry: Entry): void
  /** Resolves once at most `waiting` events wait. Throws the signal's reason. */
  untilAtMost(waiting: number, signal: AbortSignal): Promise<void>
}

/** Reasons are counted one by one up to this number. */
const NAMED_REASONS = 200
const OTHER_REASONS = 'for other reasons'

/**
 * @param tally of the run that this one continues.
 * @param onRejected is called for each rejected record in the order of the input.
 */
export function createLedger(tally: Tally, onRejected: (rejected: RejectedRecord) => void): Ledger {
  let entries: Entry[] = []
  let first = 0
  let wake: (() => void) | undefined

  function advance(): void {
    for (let entry = entries[first]; entry?.open === 0; entry = entries[first]) {
      first += 1
      settle(entry)
    }
    if (first > 1_000 && first * 2 > entries.length) {
      entries = entries.slice(first)
      first = 0
    }
    wake?.()
  }

  function settle({ outcomes, notes, rejected, checkedQuotes }: Entry): void {
    tally.events += 1
    for (const [kind, reason] of notes) count(tally.notes[kind], reason)
    for (const { quotes } of outcomes) addCounts(tally.quotes, quotes)
    for (const record of rejected) onRejected(record)
    const result = rejected.length > 0 ? 'rejected' : greatest(outcomes.map(({ outcome }) => outcome))
    if (result !== undefined) tally.threads[result] += 1
    else if (checkedQuotes !== undefined) addChecked(tally.checked, checkedQuotes)
  }

  const waiting = () => entries.length - first
  return {
    tally,
    waiting,
    open() {
      const entry: Entry = { open: 1, outcomes: [], notes: [], rejected: [] }
      entries.push(entry)
      return entry
    },
    close(entry) {
      entry.open -= 1
      if (entry === entries[first] && entry.open === 0) advance()
    },
    async untilAtMost(most, signal) {
      while (waiting() > most) {
        signal.throwIfAborted()
        const { promise, resolve } = Promise.withResolvers<void>()
        wake = resolve
        const wakeUp = () => resolve()
        signal.addEventListener('abort', wakeUp)
        await promise
        signal.removeEventListener('abort', wakeUp)
      }
      wake = undefined
    },
  }
}

/** The effect on a thread of several parts. */
function greatest(outcomes: readonly Outcome[]): Outcome | undefined {
  return (['created', 'updated', 'unchanged'] as const).find((outcome) => outcomes.includes(outcome))
}

function addCounts(to: Record<Outcome, number>, counts: Record<Outcome, number>): void {
  to.created += counts.created
  to.updated += counts.updated
  to.unchanged += counts.unchanged
}

function addChecked(checked: Tally['checked'], quotes: number): void {
  checked.threads += 1
  checked.quotes += quotes
}

function count(reasons: Record<string, number>, reason: string): void {
  const known = Object.hasOwn(reasons, reason) || Object.keys(reasons).length < NAMED_REASONS
  const name = known ? reason : OTHER_REASONS
  reasons[name] = (Object.hasOwn(reasons, name) ? (reasons[name] ?? 0) : 0) + 1
}
