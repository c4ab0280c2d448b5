// The front door of the package: formats of export files.
import type { Format } from './format.ts'
import { ndjsonFormat } from './ndjson.ts'

export * from './format.ts'

/** All formats, in the order in which they are asked whether they recognise files: those that look for less come later. */
export const formats: readonly Format[] = [ndjsonFormat]
