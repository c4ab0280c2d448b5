import assert from 'node:assert/strict'
import type { FetchedJob } from '@sluice/queue'
import { hashSpeaker } from '@sluice/store/suppressions'
import { test } from 'vitest'
import { createSuppressionCopy } from './deletions.ts'
import { requestsOf } from './job.ts'

/** A worker's copy, and functions that change the list and find who of a job is suppressed. */
function open() {
  const list = { key: 'k', ids: new Set<string>(), reads: 0, fails: false }
  const copy = createSuppressionCopy(async () => {
    list.reads += 1
    if (list.fails) throw new Error('MongoDB is unavailable')
    return { key: list.key, idsOf: new Map(list.ids.size > 0 ? [['acme', new Set(list.ids)]] : []) }
  })
  const speakers = ['Ada', ' Ada', 'Bob']
  async function found(suppressions: string, tenant = 'acme') {
    const source = { service: 'slack', externalId: 'a', title: 'A' } as const
    const threads = [{ source, quotes: [...speakers, undefined].map(quoteOf) }]
    const job: FetchedJob = {
      id: 'j',
      name: 'slack/a',
      lane: 'bulk',
      data: { tenant, stamp: 1, requestId: 'r', retained: false, threads },
      digests: ['d'],
      attempt: 1,
      redelivered: false,
      quarantined: false,
      waitsSince: 0,
      suppressions,
    }
    const [request] = await copy.mark(job, requestsOf(job))
    const { suppressions: of } = request ?? {}
    return of && speakers.filter((one) => of.has(of.hashOf(one), 'slack'))
  }
  return { list, copy, found, hashOf: (name: string) => hashSpeaker('k', 'acme', name) }
}

const quoteOf = (speaker?: string) => ({ text: 'x', ...(speaker !== undefined && { speaker }) })

test('the list is read once for each of its states, and once after each connection to Redis', async () => {
  const { list, copy, found, hashOf } = open()
  assert.equal(await found(''), undefined)
  list.ids.add(hashOf('Ada'))
  assert.equal(await found(''), undefined)
  assert.deepEqual(await found('one'), ['Ada', ' Ada'])
  assert.equal(await found('one', 'globex'), undefined)
  assert.equal(list.reads, 2)
  // Redis has lost the value of this change.
  list.ids.clear()
  copy.forget()
  assert.deepEqual([await found('one'), list.reads], [undefined, 3])
})

test('a speaker may be suppressed in one service', async () => {
  const { list, found, hashOf } = open()
  for (const id of [`${hashOf('Ada')}.email`, `${hashOf('Bob')}.slack`]) list.ids.add(id)
  assert.deepEqual(await found('one'), ['Bob'])
})

test('a job is not stored by a list that could not be read, and the next job reads it', async () => {
  const { list, found, hashOf } = open()
  await found('')
  list.ids.add(hashOf('Bob'))
  list.fails = true
  for (const state of ['one', 'one']) await assert.rejects(found(state), /unavailable/)
  list.fails = false
  assert.deepEqual([await found('one'), list.reads], [['Bob'], 4])
})
