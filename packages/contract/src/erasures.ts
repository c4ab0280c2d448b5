// Erasures of a person's words: the body of `POST /erasures`, and its answer.
import type { Static } from 'typebox'
import { closed, count, moment, named, oneOf, optional, Type, text } from './json-schema.ts'
import { parseBody } from './parse-thread.ts'
import type { JsonBounds } from './refused-text.ts'
import { required, SERVICES } from './thread-request.ts'
import type { Parsed } from './validation-errors.ts'
import { createParser } from './validator.ts'

/** What a redacted text, speaker, title or description is replaced by. It counts as no word. */
export const ERASED = '[erased]'

/** What a redaction takes words from: quotes, or also the title and the description of their source. */
export type Redacts = 'quotes' | 'all'

/**
 * Returns whether the title or the description of a source repeats this quote of it: the quote has
 * the source's externalId, or its text begins with one of them, which may end in `…`.
 */
export function repeatsQuote(
  { externalId, title, description }: Repeating,
  quote: { externalId?: string; text: string },
): boolean {
  if (quote.externalId === externalId) return true
  const text = oneLine(quote.text)
  return [title, description].some((words) => {
    const start = oneLine(words ?? '').replace(/(…|\.\.\.)$/, '')
    return start !== '' && text.startsWith(start)
  })
}

interface Repeating {
  externalId: string
  title?: string | undefined
  description?: string | undefined
}

const oneLine = (text: string) => text.replace(/\s+/g, ' ').trim()

const mode = oneOf(
  ['redact', 'remove'],
  '`redact`: text and speaker become `[erased]`, and the rest of the quote stays. `remove`: the quote goes.',
)
const dryRun = Type.Boolean({ description: 'Only counts what it would erase.' })
const suppress = Type.Boolean({
  description: 'Later posts of the speaker are stored as redacted, until you end the suppression.',
})

/** An unknown field is an error: the caller may mean to erase less. */
export const ErasureRequestSchema = closed('ErasureRequest', {
  speaker: required(
    2_000,
    'The speaker as it was posted. Case counts; white space around it and the Unicode form (NFC, NFD) do not.',
  ),
  service: optional(oneOf(SERVICES, 'Only in threads of this service.')),
  mode: optional(mode),
  dryRun: optional(dryRun),
  suppress: optional(suppress),
  reason: optional(
    Type.String({ maxLength: 200, description: 'Why, for people. Leave the name out.' }),
  ),
})

const erased = {
  speaker: text('A keyed hash of the speaker. Nobody can find the name by it.'),
  mode,
  dryRun,
}
/** What an operation erases. */
export const ErasedSchema = Type.Object(erased)

export const ErasureSchema = named('Erasure', {
  id: Type.String({ format: 'uuid', description: 'The id of the erasure.' }),
  tenant: text('The tenant of the threads.'),
  service: optional(text('The service of the threads, if only one was asked for.')),
  ...erased,
  reason: optional(text('As it was sent.')),
  by: text('The id of the key.'),
  state: oneOf(['waiting', 'active', 'completed']),
  createdAt: moment('When it was asked for.'),
  changedAt: moment('When its progress was last recorded.'),
  threads: count('Threads that were examined.'),
  quotes: count('Quotes that were erased.'),
  failed: count('Jobs of it that failed. They erase what they name once they are retried.'),
})

export const ErasureListSchema = named('ErasureList', { erasures: Type.Array(ErasureSchema) })

export type ErasureRequest = Static<typeof ErasureRequestSchema>
export type Erasure = Static<typeof ErasureSchema>

const parseErasure = createParser(ErasureRequestSchema)

/** Parses the body of `POST /erasures`. */
export const parseErasureRequest = (text: Buffer, limits: JsonBounds): Parsed<ErasureRequest> =>
  parseBody(text, limits, parseErasure)
