// Bounds the time of an API's answers, and checks their form, because the API may be of another
// release, or no API of Sluice at all.
import { createParser, type Static } from '@sluice/contract'
import { tlsFault, UserError } from '@sluice/terminal'

/**
 * The time limit of an answer. It is long, because the API examines many jobs for a filtered page
 * of failed jobs.
 */
const ANSWER_MS = 30_000

/** Makes a `fetch` whose answers fail after `mostMs`. */
export function fetchWithin(mostMs = ANSWER_MS): typeof fetch {
  return (input, init) => {
    const signals = [AbortSignal.timeout(mostMs), ...(init?.signal ? [init.signal] : [])]
    return fetch(input, { ...init, signal: AbortSignal.any(signals) })
  }
}

/** An API that is alive answers /livez within this time, even if its other answers take long. */
const ALIVE_WITHIN_MS = 3_000

/** Returns a message that the API does not answer, and why. Returns undefined if it is alive. */
export function findSilence(url: string | URL): Promise<string | undefined> {
  const signal = AbortSignal.timeout(ALIVE_WITHIN_MS)
  return fetch(new URL('./livez', url), { signal }).then(
    () => undefined,
    (error) => silenceOf(url, error),
  )
}

/** Returns a message that an API does not answer, and why. */
export function silenceOf(url: string | URL, error: unknown): string {
  const reason =
    tlsFault(error) ??
    (error instanceof Error ? String(error.cause ?? error.message) : String(error))
  const isLate = error instanceof Error && error.name === 'TimeoutError'
  return `The API at ${url} cannot be reached: ${isLate ? 'it does not answer' : reason}.`
}

/**
 * Makes a check of answers against a schema of the contract.
 * @throws {UserError}
 */
export function createAnswerCheck<Schema extends Parameters<typeof createParser>[0]>(
  schema: Schema,
) {
  const parse = createParser(schema)
  return (answer: unknown): Static<Schema> => {
    const parsed = parse(answer)
    if (parsed.ok) return parsed.value
    throw new UserError(
      `The answer is not one of this version of Sluice: see its "${parsed.errors[0]?.pointer}".`,
    )
  }
}
