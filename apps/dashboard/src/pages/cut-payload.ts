// Cuts a job's payload for display.

// Enough to recognise a thread.
const SHOWN_CHARACTERS = 300
const SHOWN_ELEMENTS = 10
const SHOWN_FIELDS = 50

// A job's data, its threads, one thread, its quotes, one quote and its fields: deeper levels belong to no payload of
// ours.
const SHOWN_LEVELS = 6

/** Cuts a job's payload for display: long texts and lists end with the length of the rest. */
export function cutPayload(value: unknown, levels = SHOWN_LEVELS): unknown {
  if (typeof value === 'string') return cutText(value)
  if (typeof value !== 'object' || value === null) return value
  if (levels === 0) return '…'
  return Array.isArray(value) ? cutList(value, levels - 1) : cutRecord(value, levels - 1)
}

function cutText(text: string): string {
  const left = text.length - SHOWN_CHARACTERS
  return left <= 0 ? text : `${text.slice(0, SHOWN_CHARACTERS).toWellFormed()}… (${left} more characters)`
}

function cutList(list: readonly unknown[], levels: number): unknown[] {
  const shown = list.slice(0, SHOWN_ELEMENTS).map((element) => cutPayload(element, levels))
  const left = list.length - shown.length
  return left === 0 ? shown : [...shown, `… (${left} more)`]
}

function cutRecord(record: object, levels: number): object {
  const fields = Object.entries(record).slice(0, SHOWN_FIELDS)
  return Object.fromEntries(fields.map(([name, value]) => [name, cutPayload(value, levels)]))
}
