import assert from 'node:assert/strict'
import { sourceIdOf } from '@sluice/store/ids'
import { testDatabase } from '@sluice/test-support'
import { test } from 'vitest'
import { createReadThread } from './find.ts'

const MINUTE_MS = 60_000

test('a thread is stored in part as long as an old write is above the watermark of its writer', async (t) => {
  const db = await testDatabase(t)
  const now = Date.now()
  const tokens = [
    { writer: 'done', batch: 1, request: 'ended', since: new Date(now - 2 * MINUTE_MS) },
    { writer: 'dead', batch: 2, request: 'open', since: new Date(now - MINUTE_MS) },
    { writer: 'alive', batch: 1, request: 'new', since: new Date(now + MINUTE_MS) },
  ]
  const _id = sourceIdOf('acme', { service: 'slack', externalId: 'C1' })
  const texts = {
    tenant: 'acme',
    service: 'slack',
    externalId: 'C1',
    title: 'T',
    status: 'TRANSCRIBED',
  }
  const source = {
    _id,
    ...texts,
    wordCount: 0,
    createdAt: new Date(now),
    meta: { insertedBy: 'ended', tokens },
  }
  await db.collection<{ _id: string }>('sources').insertOne(source)
  const writers = db.collection<{ _id: string; watermark: number }>('writers')
  await writers.insertMany([
    { _id: 'done', watermark: 1 },
    { _id: 'dead', watermark: 1 },
  ])
  const read = createReadThread(db)
  const unfinished = async () =>
    (await read('acme', _id, { limit: 10 }, new AbortController().signal))?.unfinished?.request
  assert.equal(await unfinished(), 'open')
  await writers.updateOne({ _id: 'dead' }, { $set: { watermark: 2 } })
  assert.equal(await unfinished(), undefined)
})
