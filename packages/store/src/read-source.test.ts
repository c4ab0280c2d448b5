import assert from 'node:assert/strict'
import { testDatabase } from '@sluice/test-support'
import { Collection } from 'mongodb'
import { test, vi } from 'vitest'
import { listKeyOf } from './ids.ts'
import { createSourceReads } from './read-source.ts'

const NOBODY = new AbortController().signal
const MINUTE = 60_000

test('a page of a list asks for few more sources than it has, because some servers sort all that it asks for', async (t) => {
  const db = await testDatabase(t)
  const sources = db.collection<{ _id: string }>('sources')
  const now = Date.now()
  // One a minute, and a gap of a year.
  const all = Array.from({ length: 300 }, (_, at) => {
    const _id = String(at).padStart(24, 's')
    const acceptedAt = new Date(now - at * MINUTE - (at < 200 ? 0 : 366 * 24 * 60 * MINUTE))
    const meta = { listKey: listKeyOf('acme', acceptedAt, _id) }
    return {
      _id,
      tenant: 'acme',
      title: 'T',
      externalId: _id,
      acceptedAt,
      createdAt: acceptedAt,
      quoteCount: 0,
      meta,
    }
  })
  await sources.insertMany(all)
  const { listSources } = createSourceReads(db)
  const limit = 20
  const finds = vi.spyOn(Collection.prototype, 'find')
  t.onTestFinished(() => void finds.mockRestore())
  const listed: string[] = []
  let pages = 0
  for (let next: string | undefined = ''; next !== undefined; pages++) {
    const page = await listSources('acme', { limit, ...(next !== '' && { after: next }) }, NOBODY)
    listed.push(...(page?.sources ?? []).map(({ id }) => id))
    next = page?.next
  }
  const pagesAsked = finds.mock.calls.filter(([, options]) => options?.sort !== undefined)
  const asked = await Promise.all(pagesAsked.map(([filter = {}]) => sources.countDocuments(filter)))
  assert.deepEqual(
    listed,
    all.map(({ _id }) => _id),
  )
  assert.equal(pages, 15)
  // Only the first nine pages are checked. A query near the gap, or after it, may match all sources
  // that are left.
  assert.deepEqual(
    asked.slice(0, 9).filter((count) => count > 8 * (limit + 1)),
    [],
  )
})
