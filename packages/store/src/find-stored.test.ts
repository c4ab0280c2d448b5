import assert from 'node:assert/strict'
import { HITS_PER_SEARCH } from '@sluice/contract'
import { testDatabase } from '@sluice/test-support'
import { test } from 'vitest'
import { createFindStored } from './find-stored.ts'

test('a search of one tenant and service finds its source among any number of others with the same prefix', async (t) => {
  const db = await testDatabase(t)
  const source = (_id: string, tenant: string, service: string) => {
    return { _id, tenant, service, externalId: `C0123-${_id}`, acceptedAt: new Date(0), meta: { insertedBy: 'job' } }
  }
  const others = Array.from({ length: HITS_PER_SEARCH }, (_, at) => [
    source(`a${at}`, 'other', 'slack'),
    source(`b${at}`, 'acme', 'discord'),
  ])
  await db.collection<{ _id: string }>('sources').insertMany([...others.flat(), source('wanted', 'acme', 'slack')])
  const findStored = createFindStored(db, { searchesQuotes: true })
  const { hits } = await findStored({ q: 'C0123-*', tenant: 'acme', service: 'slack' }, new AbortController().signal)
  assert.deepEqual(
    hits.map(({ id }) => id),
    ['wanted'],
  )
})
