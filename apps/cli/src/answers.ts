// Bounds the answers of an API in time and size, and checks their form: the command line trusts no
// server.
import { createParser, type Static } from '@sluice/contract'
import { UserError, untrusted } from '@sluice/terminal'

/**
 * The time limit of one answer. Long, because the API examines many jobs for a filtered page of
 * failed jobs.
 */
const ANSWER_MS = 30_000
/**
 * The bound of all bodies that one bounded `fetch` reads, together: a command keeps what it shows
 * in memory.
 */
const MOST_BYTES = 256 * 2 ** 20

/** Makes a `fetch` whose answers fail after `mostMs` each, and beyond `mostBytes` together. */
export function createBoundedFetch(mostMs = ANSWER_MS, mostBytes = MOST_BYTES): typeof fetch {
  let left = mostBytes
  return async (input, init) => {
    const signals = [AbortSignal.timeout(mostMs), ...(init?.signal ? [init.signal] : [])]
    const { body, ...response } = await open(input, { ...init, signal: AbortSignal.any(signals) })
    const bounded = new TransformStream<Uint8Array, Uint8Array>({
      transform(chunk, controller) {
        left -= chunk.length
        if (left < 0) controller.error(new Error(`its answers have more than ${mostBytes} bytes`))
        else controller.enqueue(chunk)
      },
    })
    return new Response(body?.pipeThrough(bounded) ?? null, response)
  }
}

async function open(...args: Parameters<typeof fetch>) {
  const { body, status, statusText, headers } = await fetch(...args)
  return { body, status, statusText, headers }
}

/** An API that lives answers /livez within this time, however long its answers take. */
const ALIVE_WITHIN_MS = 3_000

/** Returns that an API does not answer, and why. Undefined if it lives. */
export function findSilence(url: string | URL): Promise<string | undefined> {
  const signal = AbortSignal.timeout(ALIVE_WITHIN_MS)
  return fetch(new URL('./livez', url), { signal }).then(
    () => undefined,
    (error) => silenceOf(url, error),
  )
}

/** Says that an API does not answer, and why. */
export function silenceOf(url: string | URL, error: unknown): string {
  const reason =
    untrusted(error) ??
    (error instanceof Error ? String(error.cause ?? error.message) : String(error))
  const isLate = error instanceof Error && error.name === 'TimeoutError'
  return `The API at ${url} cannot be reached: ${isLate ? 'it does not answer' : reason}.`
}

/** Makes a check of answers by a schema of the contract. It throws UserError. */
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
