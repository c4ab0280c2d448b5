import type { Bench } from '../bench.ts'
import type { HttpContender } from '../contenders/contender.ts'
import { openLoop, type Sample } from '../open-loop.ts'
import { makeThreads, renamed } from '../threads.ts'

/** Posts per second; so few that they wait only because of `act`. */
const OTHERS_RATE = 100

/**
 * Posts single threads at a low fixed rate while `act` runs, and returns a sample of each. Two
 * calls on one database need names with different first letters.
 */
export async function whileOthersPost(
  { scale }: Bench,
  { urls, key }: Pick<HttpContender, 'urls' | 'key'>,
  name: string,
  act: () => Promise<void>,
): Promise<Sample[]> {
  const ending = new AbortController()
  const threads = renamed(makeThreads(name, scale.requests, 4_000), name)
  const posting = openLoop({ urls, key, threads, rate: OTHERS_RATE, signal: ending.signal })
  try {
    await act()
  } finally {
    ending.abort()
  }
  return posting
}
