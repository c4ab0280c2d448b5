// Reads values of options, and shows values on the terminal.
import { DURATION_FORM, durationSeconds, parseIsoDate, UNIT_SECONDS } from '@sluice/contract'
import { InvalidArgumentError } from 'commander'

/** A whole number of at least 1; throws commander's InvalidArgumentError for any other text. */
export function parseCount(text: string): number {
  if (!/^[1-9]\d{0,11}$/.test(text))
    throw new InvalidArgumentError('Write a whole number of at least 1.')
  return Number(text)
}

/**
 * Seconds in a duration such as `30m`; throws commander's InvalidArgumentError for any other text.
 */
export function parseDuration(text: string): number {
  const seconds = durationSeconds(text)
  if (seconds === undefined) throw new InvalidArgumentError(DURATION_FORM)
  return seconds
}

const READ_UNITS = ['d', 'h', 'm', 's'] as const

/**
 * A duration for people, in the largest unit of which it has at least two: `90d`, `24h`, `3.5h`,
 * `15s`.
 */
export function describeSeconds(seconds: number): string {
  const lengthOf = (unit: string) => UNIT_SECONDS.get(unit) ?? 1
  const unit = READ_UNITS.find((one) => seconds / lengthOf(one) >= LEAST_SHOWN) ?? 's'
  return `${Number((seconds / lengthOf(unit)).toFixed(1))}${unit}`
}

/** A little less than two: a moment passes before a duration of two days is shown. */
const LEAST_SHOWN = 1.999

/** A date, or the time until then (`90d`); throws commander's InvalidArgumentError. */
export function parseEnd(text: string): Date {
  return parseMoment(text, 1, 'a time from now (90d)')
}

/** A date, or the time since then (`2h`); throws commander's InvalidArgumentError. */
export function parsePast(text: string): Date {
  return parseMoment(text, -1, 'how long ago (2h)')
}

function parseMoment(text: string, direction: 1 | -1, relative: string): Date {
  const seconds = durationSeconds(text)
  if (seconds !== undefined) return new Date(Date.now() + direction * seconds * 1_000)
  const date = parseIsoDate(text)
  if (date !== undefined) return new Date(date)
  throw new InvalidArgumentError(
    `Write ${relative} or an ISO 8601 date (2030-01-31, 2030-01-31T12:00Z).`,
  )
}

/** Picks the options of a command that are fields of a schema. */
export function pickFields(options: object, { properties }: { properties: object }) {
  return Object.fromEntries(
    Object.entries(options).filter(([name]) => Object.hasOwn(properties, name)),
  )
}

/** The lines of a table: each column is as wide as its longest cell. */
export function tableLines(rows: readonly (readonly string[])[]): string[] {
  const widths =
    rows[0]?.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0))) ?? []
  const lineOf = (row: readonly string[]) =>
    row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('  ')
  return rows.map((row) => lineOf(row).trimEnd())
}

/** A number with its thousands apart: `1,200`. */
export function formatNumber(number: number): string {
  return number.toLocaleString('en')
}

/** A number before what it counts: `2 threads`. */
export function counted(number: number, noun: string): string {
  return `${formatNumber(number)} ${noun}${number === 1 ? '' : 's'}`
}

/** A moment in a cell, accurate to a minute, in UTC. */
export function formatMoment(at: Date | undefined): string {
  return at === undefined ? '-' : at.toISOString().slice(0, 16).concat('Z')
}

/**
 * Replaces characters of a foreign text that could steer the operator's terminal or reverse the
 * line. Joiners stay: emoji and Persian need them.
 */
export function printable(text: string): string {
  return text.replace(/(?![\u200c\u200d])\p{C}/gu, '\ufffd')
}

/**
 * Makes the function by which commands print lines: it cleans the texts of servers, files and
 * databases.
 */
export function createPrinter(write: (text: string) => void): (line: string) => void {
  return (line) => write(`${printable(line)}\n`)
}

/** JSON in which the characters that `printable` replaces are escaped, so that none is lost. */
export function jsonText(value: unknown, indent?: number): string {
  return JSON.stringify(value, null, indent).replace(/(?![\n\u200c\u200d])\p{C}/gu, escaped)
}

function escaped(character: string): string {
  const units = Array.from({ length: character.length }, (_, at) => character.charCodeAt(at))
  return units.map((unit) => `\\u${unit.toString(16).padStart(4, '0')}`).join('')
}

/** The beginning of a text, for a cell of a table. */
export function shortened(text: string, length: number): string {
  return text.length > length ? `${text.slice(0, length - 1).toWellFormed()}…` : text
}

/** Prints an answer as JSON, or in lines for people. */
export function printAnswer<Answer>(
  { print }: { print: (line: string) => void },
  { json }: { json?: true | undefined },
  answer: Answer,
  linesOf: (answer: Answer) => readonly string[],
): void {
  for (const line of json ? jsonText(answer, 2).split('\n') : linesOf(answer)) print(line)
}
