import { Ajv } from 'ajv'
import { parseIsoDate } from './iso-date.ts'
import { ISO_DATE, WELL_FORMED } from './thread-request-schema.ts'

/** The validator of the schemas of this package: finds every fault, with what `explainFault` needs to know of it. */
export function createValidator(): Ajv {
  const validator = new Ajv({
    allErrors: true,
    verbose: true,
    allowUnionTypes: true,
    formats: {
      [WELL_FORMED]: (text: string) => text.isWellFormed(),
      [ISO_DATE]: (text: string) => parseIsoDate(text) !== undefined,
    },
  })
  // The validator's own maxLength means the same, but counts every string to its end: half of a request's check.
  validator.removeKeyword('maxLength')
  return validator.addKeyword({
    keyword: 'maxLength',
    type: 'string',
    schemaType: 'number',
    compile: (limit: number) => (text: string) => text.length <= limit || hasAtMost(limit, text),
  })
}

function hasAtMost(limit: number, text: string): boolean {
  // A code point takes two code units at most.
  if (text.length > 2 * limit) return false
  let codePoints = 0
  for (const _ of text) codePoints++
  return codePoints <= limit
}
