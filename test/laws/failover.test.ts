import assert from 'node:assert/strict'
import { createBatchStore, type PostRequest, type StoreCommands } from '@sluice/store'
import { describe, it } from 'vitest'
import { createMemoryDatabase } from './explorer/memory-database.ts'
import { requestOf } from './support/histories.ts'
import { storeOnce } from './support/store-all.ts'

// A primary that is cut off from its majority has documents that no majority has. The next primary
// never gets them.

const quotes = [{ externalId: 'q1', text: 'two words' }]
const request = (place: number, title = 'title', some = quotes): PostRequest =>
  requestOf({ source: { service: 'slack', externalId: 't1', title }, quotes: some }, place)

/** Reads with `local` see the old primary, until the first write; all else the new one. */
function failingOver(old: StoreCommands, next: StoreCommands): StoreCommands {
  let local = old
  return {
    ...next,
    find: (name, ids, concern) => (concern === 'majority' ? next : local).find(name, ids),
    findWithoutTexts: (ids, concern) =>
      (concern === 'majority' ? next : local).findWithoutTexts(ids),
    insert: (name, documents) => {
      local = next
      return next.insert(name, documents)
    },
    update: (name, statements) => {
      local = next
      return next.update(name, statements)
    },
  }
}

describe('no request is answered from documents that no majority has', () => {
  for (const [what, some] of [
    ['no quotes', []],
    ['a quote', quotes],
  ] as const) {
    it(`if its first delivery wrote them (${what})`, async () => {
      const [old, next] = [createMemoryDatabase(), createMemoryDatabase()]
      const once = request(1, 'title', [...some])
      await storeOnce(old.commands, [once])
      const answers = await storeOnce(failingOver(old.commands, next.commands), [
        { ...once, redelivered: true },
      ])
      assert.equal(answers.size, 1)
      assert.deepEqual([next.all('sources').length, next.all('quotes').length], [1, some.length])
    })
  }

  it('if a newer request wrote them', async () => {
    const [old, next] = [createMemoryDatabase(), createMemoryDatabase()]
    await storeOnce(old.commands, [request(1)])
    await storeOnce(old.commands, [request(3)])
    const store = createBatchStore(failingOver(old.commands, next.commands))
    const answers = await store.store([request(2)])
    await store.settle()
    assert.equal(answers.size, 1)
    assert.deepEqual([next.all('sources').length, next.all('quotes').length], [1, 1])
  })
})
