import assert from 'node:assert/strict'
import type { ThreadAnswer } from '@sluice/contract'
import { test } from 'vitest'
import type { Caller } from './caller.ts'
import { storedIn } from './read-reply.ts'
import { type Body, someThread } from './some-thread.ts'

/** The expected result of several posts for one source. */
export interface MergeRow {
  it: string
  /** The fields of the posts, one after the other. */
  posts: Body[]
  /**
   * The last answer: outcomes of source and quotes, and fields that they must have, among others.
   * `absent` names fields that the first quote, or else the source, must not have.
   */
  outcomes: string[]
  source?: Body
  quote?: Body
  absent?: string[]
}

/** One quote with an externalId, in each of a row's posts. */
export const q = (fields: Body) => ({ quotes: [{ externalId: 'q', text: 'one two', ...fields }] })

/**
 * Registers a test for each row: it posts the row's posts for a source of its own and checks the
 * last answer. `caller` is read when a test runs.
 */
export function checkMerges(caller: () => Caller, rows: MergeRow[]): void {
  for (const { it, posts, outcomes, source, quote, absent = [] } of rows) {
    test(it, async () => {
      const last = await postInTurn(caller(), posts)
      const [first] = last.quotes
      assert.deepEqual(
        [last.source.outcome, ...last.quotes.map(({ outcome }) => outcome)],
        outcomes,
      )
      if (source !== undefined) assert.partialDeepStrictEqual(last.source, source)
      if (quote !== undefined) assert.partialDeepStrictEqual(first, quote)
      for (const name of absent) assert.ok(!(name in (first ?? last.source)), `${name} is there`)
    })
  }
}

async function postInTurn(caller: Caller, posts: Body[]): Promise<ThreadAnswer> {
  const thread = someThread()
  const answers: ThreadAnswer[] = []
  for (const post of posts) answers.push(storedIn(await caller.post({ ...thread, ...post })))
  const last = answers.at(-1)
  assert.ok(last !== undefined)
  for (const { source } of answers) assert.equal(source.id, last.source.id)
  return last
}
