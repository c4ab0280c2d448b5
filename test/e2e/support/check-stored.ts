import assert from 'node:assert/strict'
import { test } from 'vitest'
import type { Caller } from './caller.ts'
import { storedIn } from './read-reply.ts'
import type { Body } from './some-thread.ts'

/** The expected answer to one valid request. */
export interface StoredRow {
  it: string
  send: Body | string
  /**
   * Fields that the answer's source or first quote must have, among others. `absent` names fields
   * that it must not have.
   */
  source?: Body
  quote?: Body
  absent?: string[]
}

/**
 * Registers a test for each row: it posts the row's request and checks the stored thread in the
 * answer. `caller` is read when a test runs.
 */
export function checkStored(caller: () => Caller, rows: StoredRow[]): void {
  for (const { it, send, source, quote, absent = [] } of rows) {
    test(it, async () => {
      const answer = storedIn(await caller().post(send))
      const seen: Body = { ...(source === undefined ? answer.quotes[0] : answer.source) }
      assert.equal(answer.message, 'New source received successfully.')
      assert.partialDeepStrictEqual(seen, source ?? quote ?? {})
      for (const name of absent) assert.ok(!(name in seen), `${name} is there: ${seen[name]}`)
    })
  }
}
