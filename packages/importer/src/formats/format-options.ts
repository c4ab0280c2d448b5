// The options that only some formats read. The help and the documents derive from this table, and
// from the options of each format.
import { InvalidArgumentError } from 'commander'
import type { Format, FormatOptions } from './format.ts'
import { isTimeZone } from './values/iso-date.ts'
import { orderOf } from './values/written-values.ts'

interface FormatOption {
  flags: string
  description: string
  parse?: (text: string, before: unknown) => unknown
}

export const FORMAT_OPTIONS: { readonly [Name in keyof Required<FormatOptions>]: FormatOption } = {
  map: {
    flags: '--map <field=column>',
    description: 'takes a field from another column; repeatable',
    parse: parsePair,
  },
  set: {
    flags: '--set <field=value>',
    description: 'gives all threads a value; repeatable',
    parse: parsePair,
  },
  groupBy: {
    flags: '--group-by <column>',
    description: 'the column with the externalId of the source',
  },
  dateFormat: {
    flags: '--date-format <order>',
    description: 'the order of day, month and year, such as D.M.Y or M/D/Y',
    parse: parseOrder,
  },
  timezone: {
    flags: '--timezone <name>',
    description: 'the time zone of dates that name none, such as Europe/Berlin',
    parse: parseZone,
  },
  threadsOnly: { flags: '--threads-only', description: 'only messages with replies' },
  workspace: {
    flags: '--workspace <name>',
    description: 'the name of the workspace, for the URLs of messages',
  },
  internalNotes: { flags: '--internal-notes', description: 'comments that are not public, too' },
  stripQuotes: { flags: '--strip-quotes', description: 'without the text that a mail quotes' },
}

export const OPTION_NAMES = Object.keys(FORMAT_OPTIONS) as (keyof FormatOptions)[]

/** Returns the options that a format reads. */
export function optionsOf({ options: names = [] }: Format, options: FormatOptions): FormatOptions {
  const read = Object.fromEntries(names.map((name) => [name, options[name]]))
  return { map: new Map(), set: new Map(), ...read }
}

/** Returns the first option that none of the formats reads. */
export function uselessOption(
  formats: readonly Format[],
  options: FormatOptions,
): keyof FormatOptions | undefined {
  return OPTION_NAMES.find((name) => {
    const value = options[name]
    const isGiven = value instanceof Map ? value.size > 0 : value !== undefined
    return isGiven && !formats.some((format) => format.options?.includes(name))
  })
}

/** Returns the names of the formats that read an option. */
export function readersOf(name: keyof FormatOptions, formats: readonly Format[]): string {
  return formats.flatMap((format) => (format.options?.includes(name) ? format.name : [])).join(', ')
}

function parsePair(text: string, before: unknown): ReadonlyMap<string, string> {
  const at = text.indexOf('=')
  if (at < 1) throw new InvalidArgumentError('Write a name, =, and a value.')
  return new Map([
    ...(before instanceof Map ? before : []),
    [text.slice(0, at), text.slice(at + 1)],
  ])
}

function parseZone(text: string): string {
  if (isTimeZone(text)) return text
  throw new InvalidArgumentError('Write the name of a time zone, such as Europe/Berlin or UTC.')
}

function parseOrder(text: string): string {
  if (orderOf(text) !== undefined) return text
  throw new InvalidArgumentError(
    'Write the order of day, month and year, such as D.M.Y, M/D/Y or Y-M-D.',
  )
}
