import type { Bench } from '../bench.ts'
import type { HttpContender } from '../contenders/contender.ts'
import { openLoop, type Sample } from '../open-loop.ts'
import { makeThreads, renamed } from '../threads.ts'

/** Posts a second; low enough that nothing waits but for what happens beside them. */
const OTHERS_RATE = 100

/** Has others post single threads at a low fixed rate for as long as `act` takes, and tells what became of each. No two times on one database may have names with the same first letter. */
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
