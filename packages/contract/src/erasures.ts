// Erasures of a person's words: the body of `POST /erasures`, and its answer.
import type { Static } from 'typebox'
import { closed, count, moment, named, oneOf, optional, Type, text, uuid } from './json-schema.ts'
import { parseBody } from './parse-thread.ts'
import type { JsonBounds } from './refused-text.ts'
import { required, SERVICES } from './thread-request.ts'
import type { Parsed } from './validation-errors.ts'
import { createParser } from './validator.ts'

/** What a redacted text, speaker, title or description is replaced by. It counts as no word. */
export const ERASED = '[erased]'

/** What replaces the fields of a redacted quote that have words. */
export const REDACTED = { text: ERASED, speaker: ERASED } as const

/**
 * What a redaction replaces: texts and speakers of quotes (`quotes`), the title, the description
 * and the URL of their source as well (`all`), and also the name of its channel (`channel`).
 */
export type Redacts = 'quotes' | 'all' | 'channel'

/**
 * What a deletion removes: a source or, with `quoteIds`, only these of its quotes.
 * - `redacts`: the quotes stay, without their texts and speakers. With `all` or `channel`, fields
 * of the source are redacted, too. The source then records `speaker`, the hash of the erased
 * person.
 * - `until`: the stamp of the deletion. It removes nothing of a source that has a later post.
 */
export interface DeletionScope {
  sourceId: string
  quoteIds?: string[]
  until?: number
  redacts?: Redacts
  speaker?: string
}

/**
 * Makes the function that returns what a redaction of a quote replaces in its source. Title,
 * description and URL are replaced if they name the speaker, if the text begins with the title or
 * the description, which may end in `…`, or if the source's externalId is the quote's, perhaps
 * behind a prefix.
 */
export function createRedactsOf({ externalId, title, description, url, channelName }: Repeating) {
  const starts = [title, description].flatMap((words = '') => {
    const start = oneLine(words).replace(/(…|\.\.\.)$/, '')
    return start === '' ? [] : [start]
  })
  const [channel = '', ...others] = [channelName, title, description, url].map(inWords)
  return ({ externalId: id = '', text, speaker = '' }: RepeatedQuote): Redacts => {
    const name = inWords(speaker)
    const isNamedIn = (words: string) => name !== ' ' && words.includes(name)
    if (isNamedIn(channel)) return 'channel'
    const isRoot = id !== '' && externalId.endsWith(id) && !/[\p{L}\p{N}]$/u.test(cutEnd(id))
    if (isRoot || others.some(isNamedIn)) return 'all'
    const line = oneLine(text)
    return starts.some((start) => line.startsWith(start)) ? 'all' : 'quotes'
  }

  function cutEnd(end: string): string {
    return externalId.slice(0, -end.length)
  }
}

/** Returns the one that replaces more. */
export const moreOf = (one: Redacts, other: Redacts): Redacts =>
  REDACTS.indexOf(one) < REDACTS.indexOf(other) ? other : one

const REDACTS: readonly Redacts[] = ['quotes', 'all', 'channel']

interface Repeating {
  externalId: string
  title?: string | undefined
  description?: string | undefined
  url?: string | undefined
  channelName?: string | undefined
}

interface RepeatedQuote {
  externalId?: string
  text: string
  speaker?: string
}

/** Returns the fields of a source that a redaction replaces, with their new texts. */
export function erasedWith(
  redacts: Redacts,
  { description, url, channelName }: Omit<Repeating, 'externalId'>,
) {
  if (redacts === 'quotes') return undefined
  return {
    title: ERASED,
    ...(description !== undefined && { description: ERASED }),
    ...(url !== undefined && { url: ERASED }),
    ...(redacts === 'channel' && channelName !== undefined && { channelName: ERASED }),
  }
}

/** Returns the fields of a source as a redaction leaves them. */
export function withErased<Fields extends Omit<Repeating, 'externalId'>>(
  redacts: Redacts,
  fields: Fields,
): Fields {
  return redacts === 'quotes' ? fields : { ...fields, ...erasedWith(redacts, fields) }
}

const oneLine = (text: string) => text.replace(/\s+/g, ' ').trim()

/** Returns the words of a text, with one space before and after each. */
const inWords = (text = '') => ` ${text.normalize('NFC')} `.replace(/[^\p{L}\p{M}\p{N}]+/gu, ' ')

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
  id: uuid('The id of the erasure.'),
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
