import { createRandom, type Random } from './random.ts'

/** A request body, as text: making it is no part of what is measured. */
export interface MadeThread {
  body: string
  quotes: number
}

const WORDS = 'the a thread we saw this again after an upgrade of our cluster and it does not start please try with latest version thanks for your report can you share logs error timeout connection'.split(' ')

/**
 * Threads as they come: log-normal in how many quotes they have (median 5, long tail) and in how long each is (median 120 characters), and one in ten is an earlier
 * one again.
 *
 * @param name tells runs apart, so that no run meets the threads of another.
 */
export function makeThreads(name: string, count: number, seed = 1): MadeThread[] {
  const random = createRandom(seed)
  const made: MadeThread[] = []
  for (let at = 0; at < count; at++) {
    const again = at > 10 && random.next() < 0.1
    const earlier = made[Math.floor(random.next() * made.length)]
    made.push(again && earlier !== undefined ? earlier : makeThread(`${name}-${at}`, random))
  }
  return made
}

function makeThread(externalId: string, random: Random): MadeThread {
  const quotes = Math.max(1, Math.min(300, Math.round(random.logNormal(5, 0.8))))
  const thread = {
    title: `Thread ${externalId}: ${text(60, random)}`,
    externalId,
    service: 'slack',
    channelName: 'support',
    url: `https://example.com/threads/${externalId}`,
    quotes: Array.from({ length: quotes }, (_, at) => makeQuote(externalId, at, random)),
  }
  return { body: JSON.stringify(thread), quotes }
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
