// Reads values of options, and formats values for the terminal.
import { DURATION_FORM, durationSeconds, parseIsoDate, UNIT_SECONDS } from '@sluice/contract'
import { InvalidArgumentError } from 'commander'

/**
 * Reads a whole number of at least 1.
 * @throws commander's InvalidArgumentError for any other text.
 */
export function parseCount(text: string): number {
  if (!/^[1-9]\d{0,11}$/.test(text))
    throw new InvalidArgumentError('Write a whole number of at least 1.')
  return Number(text)
}

/**
 * Reads a duration such as `30m`, in seconds.
 * @throws commander's InvalidArgumentError for any other text.
 */
export function parseDuration(text: string): number {
  const seconds = durationSeconds(text)
  if (seconds === undefined) throw new InvalidArgumentError(DURATION_FORM)
  return seconds
}

const READ_UNITS = ['d', 'h', 'm', 's'] as const

/**
 * Formats a duration for people, in the largest unit of which it has at least two: `90d`, `24h`,
 * `3.5h`, `15s`.
 */
export function describeSeconds(seconds: number): string {
  const lengthOf = (unit: string) => UNIT_SECONDS.get(unit) ?? 1
  const unit = READ_UNITS.find((one) => seconds / lengthOf(one) >= LEAST_SHOWN) ?? 's'
  return `${Number((seconds / lengthOf(unit)).toFixed(1))}${unit}`
}

/** Says why a request is sent again, and when. */
export function describeRetry({ cause, delayMs }: { cause: Error; delayMs: number }): string {
  return `${cause.message} Trying again in ${describeSeconds(delayMs / 1_000)}.`
}

/** Slightly less than two, because a moment passes until a duration of two days is shown. */
const LEAST_SHOWN = 1.999

/**
 * Reads a date, or the time from now until the date (`90d`).
 * @throws commander's InvalidArgumentError.
 */
export function parseEnd(text: string): Date {
  return parseMoment(text, 1, 'a time from now (90d)')
}

/**
 * Reads a date, or the time since the date (`2h`).
 * @throws commander's InvalidArgumentError.
 */
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

/** Picks the options of a command that are also fields of a schema. */
export function pickFields(options: object, { properties }: { properties: object }) {
  return Object.fromEntries(
    Object.entries(options).filter(([name]) => Object.hasOwn(properties, name)),
  )
}

/** Formats a table as lines. A cell of more than 60 characters moves its own line only. */
export function tableLines(rows: readonly (readonly string[])[]): string[] {
  const widthOf = (column: number) => Math.max(...rows.map((row) => row[column]?.length ?? 0))
  const widths = rows[0]?.map((_, column) => Math.min(widthOf(column), 60)) ?? []
  const lineOf = (row: readonly string[]) =>
    row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('  ')
  return rows.map((row) => lineOf(row).trimEnd())
}

/** Formats a number with separators: `1,200`. */
export function formatNumber(number: number): string {
  return number.toLocaleString('en')
}

/** Puts a number in front of what it counts: `2 threads`. */
export function counted(number: number, noun: string): string {
  return `${formatNumber(number)} ${noun}${number === 1 ? '' : 's'}`
}

/** Formats a moment for a cell, in UTC, accurate to a minute. */
export function formatMoment(at: Date | undefined): string {
  return at === undefined ? '-' : at.toISOString().slice(0, 16).concat('Z')
}

/**
 * Replaces characters of a foreign text that could steer the operator's terminal or reverse the
 * line. Keeps joiners, because emoji and Persian need them.
 */
export function printable(text: string): string {
  return text.replace(/(?![\u200c\u200d])\p{C}/gu, '\ufffd')
}

/**
 * Makes the function with which commands print lines. It cleans texts that come from servers, files
 * and databases.
 */
export function createPrinter(write: (text: string) => void): (line: string) => void {
  return (line) => write(`${printable(line)}\n`)
}

/** Writes JSON. Escapes the characters that `printable` would replace, so that none is lost. */
export function jsonText(value: unknown, indent?: number): string {
  return JSON.stringify(value, null, indent).replace(/(?![\n\u200c\u200d])\p{C}/gu, escaped)
}

function escaped(character: string): string {
  const units = Array.from({ length: character.length }, (_, at) => character.charCodeAt(at))
  return units.map((unit) => `\\u${unit.toString(16).padStart(4, '0')}`).join('')
}

/** Cuts a text for a cell of a table. */
export function shortened(text: string, length: number): string {
  return text.length > length ? `${text.slice(0, length - 1).toWellFormed()}…` : text
}

/** Prints an answer as JSON, or as lines for people. */
export function printAnswer<Answer>(
  { print }: { print: (line: string) => void },
  { json }: { json?: true | undefined },
  answer: Answer,
  linesOf: (answer: Answer) => readonly string[],
): void {
  for (const line of json ? jsonText(answer, 2).split('\n') : linesOf(answer)) print(line)
}
