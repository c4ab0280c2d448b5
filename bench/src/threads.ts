import { createRandom, type Random } from './random.ts'

/** A request body in bytes, made before the measurement. */
export interface MadeThread {
  body: Buffer
  quotes: number
}

const WORDS =
  'the a thread we saw this again after an upgrade of our cluster and it does not start please try with latest version thanks for your report can you share logs error timeout connection'.split(
    ' ',
  )

/** One thread in ten repeats an earlier one. */
const REPOSTS = 0.1

/**
 * Makes typical threads: the number of quotes (median 5, long tail) and their length (median 120
 * characters) are log-normal, and one thread in ten repeats an earlier one.
 *
 * @param name distinguishes runs, so that no run repeats the threads of another.
 */
export function makeThreads(
  name: string,
  count: number,
  seed = 1,
  reposts = REPOSTS,
): MadeThread[] {
  const random = createRandom(seed)
  const made: MadeThread[] = []
  for (let at = 0; at < count; at++) {
    const again = at > 10 && random.next() < reposts
    const earlier = made[Math.floor(random.next() * made.length)]
    made.push(again && earlier !== undefined ? earlier : makeThread(`${name}-${at}`, random))
  }
  return made
}

/**
 * An endless supply: the threads made under this name, again and again, each time under another
 * name of the same length and first letter, so that all but the repeats are new.
 */
export function* renamed(threads: readonly MadeThread[], name: string): Generator<MadeThread> {
  for (let pass = 0; ; pass++) {
    const other = name.charAt(0) + String(pass).padStart(name.length - 1, '0')
    for (const { body, quotes } of threads)
      yield { body: Buffer.from(body.toString('latin1').replaceAll(name, other), 'latin1'), quotes }
  }
}

/** The next `count` threads of an endless supply. */
export function takeSome(supply: Iterator<MadeThread>, count: number): MadeThread[] {
  const threads: MadeThread[] = []
  for (let next = supply.next(); !next.done; next = supply.next()) {
    threads.push(next.value)
    if (threads.length >= count) break
  }
  return threads
}

/** A thread of `quotes` quotes, each of `characters` characters. */
export function makeLongThread(externalId: string, quotes: number, characters: number): MadeThread {
  const random = createRandom(quotes)
  const made = Array.from({ length: quotes }, (_, at) => ({
    externalId: `${externalId}-${at}`,
    text: text(characters, random).slice(0, characters),
    speaker: `user-${at % 500}`,
  }))
  return madeOf({ title: `Thread ${externalId}`, externalId, service: 'slack', quotes: made })
}

function makeThread(externalId: string, random: Random): MadeThread {
  const quotes = Math.max(1, Math.min(300, Math.round(random.logNormal(5, 0.8))))
  return madeOf({
    title: `Thread ${externalId}: ${text(60, random)}`,
    externalId,
    service: 'slack',
    channelName: 'support',
    url: `https://example.com/threads/${externalId}`,
    quotes: Array.from({ length: quotes }, (_, at) => makeQuote(externalId, at, random)),
  })
}

function madeOf(thread: { quotes: readonly object[] } & Record<string, unknown>): MadeThread {
  return { body: Buffer.from(JSON.stringify(thread)), quotes: thread.quotes.length }
}

function makeQuote(externalId: string, at: number, random: Random) {
  return {
    externalId: `${externalId}-${at}`,
    text: text(Math.max(10, Math.min(8_000, random.logNormal(120, 0.9))), random),
    speaker: `user-${Math.floor(random.next() * 500)}`,
    createdAt: new Date(1_700_000_000_000 + Math.floor(random.next() * 1e10)).toISOString(),
    ...(at > 0 && { replyingTo: `${externalId}-${Math.floor(random.next() * at)}` }),
    upVotes: Math.floor(random.next() * 20),
  }
}

function text(length: number, random: Random): string {
  let made = ''
  while (made.length < length) made += `${WORDS[Math.floor(random.next() * WORDS.length)]} `
  return made.trimEnd()
}
