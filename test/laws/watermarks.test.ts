import assert from 'node:assert/strict'
import { createBatchStore, type StoreCommands } from '@sluice/store'
import { MongoNetworkError } from 'mongodb'
import { it } from 'vitest'
import { createMemoryDatabase } from './explorer/memory-database.ts'
import { requestOf } from './support/histories.ts'

// The watermark of a process whose raises fail or take effect late.

const request = (place: number) =>
  requestOf(
    {
      source: { service: 'slack', externalId: `t${place}`, title: 'title' },
      quotes: [{ externalId: 'q1', text: 'two words' }],
    },
    place,
  )

it('a raise that takes effect after a later one does not lower the watermark', async () => {
  const { commands, all } = createMemoryDatabase()
  let sendLate: (() => Promise<unknown>) | undefined
  const update: StoreCommands['update'] = async (name, statements) => {
    if (name !== 'writers' || sendLate !== undefined) return commands.update(name, statements)
    sendLate = () => commands.update(name, statements)
    throw new MongoNetworkError('timed out')
  }
  const store = createBatchStore({ ...commands, update })
  await store.store([request(1)])
  await assert.rejects(store.settle(), MongoNetworkError)
  await store.store([request(2)])
  await store.settle()
  assert.equal(all('writers')[0]?.watermark, 2)
  await sendLate?.()
  assert.equal(all('writers')[0]?.watermark, 2)
})
