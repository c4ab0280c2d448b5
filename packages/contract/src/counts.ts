// What processes count. The schema of the overview, its sums, the columns of pages and of `sluice
// status`, and the documents derive from this table. A new count needs a row here. `readApi` or
// `readWorker` then does not compile without a line that reads it from a metric.
import type { TOptional } from 'typebox'
import { outcomeCounts } from './answers.ts'
import { count, optional, Type } from './json-schema.ts'

interface Count {
  /** The heading of the count's column. */
  title: string
  unit: 'threads' | 'requests'
  /** The kind of process that makes the count. */
  by: 'api' | 'worker'
  text: string
  /**
   * An API of an earlier release does not answer with this count, and `sluice status` may ask such
   * an API.
   */
  isOptional?: true
}

export const COUNTS = {
  accepted: {
    title: 'Accepted',
    unit: 'threads',
    by: 'api',
    text: 'Threads that were accepted.',
  },
  stored: {
    title: 'Stored',
    unit: 'threads',
    by: 'worker',
    text: 'Threads that were stored, by their outcome.',
  },
  failed: {
    title: 'Failed',
    unit: 'threads',
    by: 'worker',
    text: 'Threads that failed for good.',
  },
  refused: {
    title: 'Refused',
    unit: 'requests',
    by: 'api',
    text: 'Requests that were refused because of the load or a quota, or because Redis, MongoDB or the API failed.',
  },
  timedOut: {
    title: 'Timed out',
    unit: 'requests',
    by: 'api',
    text: 'Requests that were answered 504: not stored, or not surely accepted, in time.',
    isOptional: true,
  },
  forbidden: {
    title: 'Forbidden',
    unit: 'requests',
    by: 'api',
    text: 'Requests that were answered 403, because of their key.',
    isOptional: true,
  },
  invalid: {
    title: 'Invalid',
    unit: 'requests',
    by: 'api',
    text: 'Requests to post that were answered 400, because they break a rule.',
    isOptional: true,
  },
} as const satisfies Record<string, Count>

type Counted = keyof typeof COUNTS
type Outcomes = Record<keyof typeof outcomeCounts, number>
/** What was counted in a span of time. */
type SpanCounts = { readonly [name in Exclude<Counted, 'stored'>]?: number } & {
  readonly stored: Outcomes
}

/**
 * The counts that a kind of process must send. Stored threads are counted by outcome:
 * `stored:created`.
 */
export type CountsBy<Kind extends Count['by']> = InHeartbeat<
  { [name in Counted]: (typeof COUNTS)[name]['by'] extends Kind ? name : never }[Counted]
>
type InHeartbeat<Name> = Name extends 'stored' ? `stored:${keyof Outcomes}` : Name

/** The names of the counts, in the order of their columns. */
export const COUNT_NAMES = Object.keys(COUNTS) as readonly Counted[]

type CountSchema = ReturnType<typeof count>
type CountSchemas = {
  [name in Counted]: (typeof COUNTS)[name] extends { isOptional: true }
    ? TOptional<CountSchema>
    : CountSchema
}

const ofPoint = Object.fromEntries(
  COUNT_NAMES.map((name) => {
    const { text, isOptional }: Count = COUNTS[name]
    return [name, isOptional ? optional(count(text)) : count(text)]
  }),
) as CountSchemas

/** The properties of a schema for what was counted in a span of time. */
export const countProperties = {
  ...ofPoint,
  stored: Type.Object(outcomeCounts, { description: COUNTS.stored.text }),
}

const namesOf = (unit: Count['unit']) =>
  COUNT_NAMES.filter((name) => COUNTS[name].unit === unit).map((name) => `\`${name}\``)

/** Says in words what a process counts. */
export const COUNTS_TEXT = `${namesOf('threads').join(', ')} threads; ${namesOf('requests').join(', ')} requests.`

/**
 * Makes the counts of a span.
 * @param sumOf returns the sum of a count in heartbeats, such as `failed` or `stored:created`.
 */
export function spanCounts(sumOf: (name: string) => number) {
  const counts = Object.fromEntries(COUNT_NAMES.map((name) => [name, sumOf(name)])) as Record<
    Counted,
    number
  >
  const [created, updated, unchanged] = [
    sumOf('stored:created'),
    sumOf('stored:updated'),
    // A deletion stores nothing. A post that was accepted before a deletion stores nothing, either.
    sumOf('stored:unchanged') + sumOf('stored:deleted'),
  ]
  return { ...counts, stored: { created, updated, unchanged } }
}

/** Returns a count of a span. The count of stored threads is the sum over their outcomes. */
export function countOf(counts: SpanCounts, name: Counted): number {
  if (name !== 'stored') return counts[name] ?? 0
  const { created, updated, unchanged } = counts.stored
  return created + updated + unchanged
}

/** Converts a count to a rate per second, over the time that a span covers. */
export function perSecondOf({ coveredSeconds }: { coveredSeconds: number }, count: number): number {
  return count / Math.max(coveredSeconds, 1)
}
