// Formats numbers and durations for people.

/** A whole number with separators. */
export const shown = (value: number) => Math.round(value).toLocaleString('en')
export const megabytes = (bytes: number) => `${shown(bytes / 1e6)} MB`

const UNITS = Object.entries({ d: 86_400_000, h: 3_600_000, min: 60_000, s: 1_000 })

/** A duration, in the largest unit of which it has at least two: `90 s`, `3 h`. */
export function duration(ms: number): string {
  const [unit, length] = UNITS.find(([, least]) => ms >= 2 * least) ?? ['s', 1_000]
  return `${Math.max(Math.floor(ms / length), 0)} ${unit}`
}
