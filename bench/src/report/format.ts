import type { Figure, Floor } from '../scenarios/scenario.ts'

/** A figure with its significant digits. */
export function digits(value: number): string {
  if (!Number.isFinite(value)) return '–'
  const decimals =
    Math.abs(value) >= 100 || Number.isInteger(value) ? 0 : Math.abs(value) >= 10 ? 1 : 2
  return value.toLocaleString('en', {
    minimumFractionDigits: decimals,
    maximumFractionDigits: decimals,
  })
}

/** A figure with its unit, and the kind of server that it was measured on. */
export function figureLine({ what, value, unit }: Figure, server: string): string {
  return `${what}: ${`${digits(value)} ${unit}`.trimEnd()} (${server})`
}

/** A floor, and whether it was reached; a run that is too small to judge shows only the figure. */
export function floorLine(
  { what, value, bound, is, reached }: Floor,
  judged: boolean,
  server: string,
): string {
  const verdict = judged ? (reached ? 'reached' : 'MISSED') : 'not judged: a full run is'
  return `${what}: ${digits(value)} (${is} ${digits(bound)}: ${verdict}; ${server})`
}
