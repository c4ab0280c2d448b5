// A well-behaved caller of another tenant, whose answers are timed while others attack.
import assert from 'node:assert/strict'
import type { Caller } from '../../e2e/support/caller.ts'
import { storedIn } from '../../e2e/support/read-reply.ts'
import { someThread } from '../../e2e/support/some-thread.ts'

/**
 * Posts one thread after the other while the work goes on. Returns the time of each answer, in ms.
 * Every answer must be a 200.
 */
export async function postDuring(caller: Caller, work: Promise<unknown>): Promise<number[]> {
  const times: number[] = []
  let isDone = false
  const done = work.finally(() => (isDone = true))
  while (!isDone) times.push(await postTimed(caller))
  await done
  return times
}

/** Posts so many threads, one after the other. Returns the time of each answer, in ms. */
export async function postTimes(caller: Caller, count: number): Promise<number[]> {
  const times: number[] = []
  for (let posted = 0; posted < count; posted++) times.push(await postTimed(caller))
  return times
}

async function postTimed(caller: Caller): Promise<number> {
  const thread = someThread()
  const began = performance.now()
  const reply = await caller.post(thread)
  const ms = performance.now() - began
  assert.equal(storedIn(reply).source.outcome, 'created')
  return ms
}

/** The time that 99 of 100 answers stay below. */
export function p99(times: readonly number[]): number {
  return times.toSorted((one, other) => one - other)[Math.floor(times.length * 0.99)] ?? Number.NaN
}
