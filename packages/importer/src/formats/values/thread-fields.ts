// The fields of a source and of a quote, and the options --map and --set, which name fields.
import { DEFAULT_LIMITS, ISO_DATE, SERVICES, ThreadRequestSchema } from '@sluice/contract'
import { FormatError } from '../format.ts'
import { asNumber } from './record-fields.ts'

const { quotes, ...source } = ThreadRequestSchema(DEFAULT_LIMITS).properties
const schemas: Readonly<Record<string, object>> = { ...source, ...quotes.items.properties }

/** The names of a source's fields, without `quotes`. */
export const SOURCE_FIELDS: ReadonlySet<string> = new Set(Object.keys(source))
export const QUOTE_FIELDS: ReadonlySet<string> = new Set(Object.keys(quotes.items.properties))
export const DATES = fieldsWith(({ format }) => format === ISO_DATE)
export const NUMBERS = fieldsWith(({ type }) => [type].flat().includes('number'))

function fieldsWith(
  has: (schema: { type?: unknown; format?: unknown }) => boolean,
): ReadonlySet<string> {
  return new Set(Object.keys(schemas).filter((field) => has({ ...schemas[field] })))
}

/** Returns a field's value. A text that should be a number stays a text: the API reports it. */
export function fieldValue(field: string, text: string): string | number {
  return NUMBERS.has(field) ? (asNumber(text) ?? text) : text
}

/** Throws FormatError if the option names an unknown field, or sets an unknown service. */
export function checkFields(
  option: string,
  fields: ReadonlyMap<string, string>,
  known: ReadonlySet<string>,
): void {
  for (const field of fields.keys()) {
    if (!known.has(field))
      throw new FormatError(
        `${option} names the unknown field ${field}. Fields: ${[...known].join(', ')}.`,
      )
  }
  const service = fields.get('service')
  if (option === '--set' && service !== undefined && !SERVICES.some((each) => each === service))
    throw new FormatError(
      `--set service=${service}: the service must be one of ${SERVICES.join(', ')}.`,
    )
}

/** Returns the option that reads a field from this column, as a user must type it. */
export function mapOption(field: string, name: string): string {
  return `--map ${shellWord(`${field}=${name}`)}`
}

/** Quotes a text as one word of a POSIX shell. */
export function shellWord(text: string, most = 200): string {
  const short = text.slice(0, most)
  return /^[\w./=:@%+-]+$/.test(short) ? short : `'${short.replaceAll("'", `'\\''`)}'`
}
