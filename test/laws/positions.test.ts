import assert from 'node:assert/strict'
import type { QuoteFields } from '@sluice/contract'
import type { PostRequest } from '@sluice/store'
import { describe, it } from 'vitest'
import { aThread as aNewThread } from './support/a-thread.ts'
import { openStore } from './support/open-store.ts'
import { storeOnce } from './support/store-all.ts'

// The positions of quotes, step by step on the real server. The explorer holds the law in general.

const q = (externalId: string, more: Partial<QuoteFields> = {}): QuoteFields => ({
  externalId,
  text: externalId,
  ...more,
})
/**
 * The position that the request at this place in the order of acceptance gives to its quote at this
 * index.
 */
const at = (place: number, index: number) =>
  `${String(place).padStart(10, '0')}000000.${String(index).padStart(6, '0')}`

describe('the position of a quote', () => {
  const { commands, quotes } = openStore('positions')

  function aThread() {
    const { says: saysUndated, sourceId } = aNewThread()
    /** A source whose date does not follow from its requests. */
    function says(place: number, ...some: QuoteFields[]): PostRequest {
      const { thread, ...request } = saysUndated(place, ...some)
      const source = { ...thread.source, createdAt: '2024-05-01T00:00:00.000Z' }
      return { ...request, thread: { ...thread, source } }
    }
    const stored = () => quotes.find({ sourceId }).sort({ position: 1, _id: 1 }).toArray()
    /** The stored positions by the quotes' texts. */
    const positions = async () =>
      Object.fromEntries((await stored()).map(({ text, position }) => [text, position]))
    return { says, stored, positions }
  }

  async function outcomesOf(request: PostRequest): Promise<string[]> {
    const answer = (await storeOnce(commands, [request])).get(request.id)
    assert.ok(answer !== undefined)
    return [answer.source, ...answer.quotes].map(({ outcome }) => outcome)
  }

  it('is the smallest that any request gave, however late an older request is processed, and that alone is unchanged', async () => {
    const { says, stored, positions } = aThread()
    await outcomesOf(says(3, q('a'), q('b'), q('c')))
    const before = await stored()
    assert.deepEqual(await outcomesOf(says(4, q('c'), q('b'))), [
      'unchanged',
      'unchanged',
      'unchanged',
    ])
    assert.deepEqual(await positions(), { a: at(3, 0), b: at(3, 1), c: at(3, 2) })
    assert.deepEqual(await outcomesOf(says(2, q('c'), q('a'))), [
      'unchanged',
      'unchanged',
      'unchanged',
    ])
    assert.deepEqual(await positions(), { c: at(2, 0), a: at(2, 1), b: at(3, 1) })
    const after = await stored()
    assert.deepEqual(new Set(after.map(({ meta }) => meta.changedBy)), new Set([undefined]))
    assert.equal(after.length, before.length)
  })

  it('gets smaller by an older request whose text is outdated, and the newer text stays', async () => {
    const { says, stored } = aThread()
    await outcomesOf(says(2, q('a', { text: 'newer' })))
    assert.deepEqual(await outcomesOf(says(1, q('b'), q('a', { text: 'older' }))), [
      'updated',
      'created',
      'unchanged',
    ])
    assert.deepEqual(
      (await stored()).map(({ text, position }) => [text, position]),
      [
        ['b', at(1, 0)],
        ['newer', at(1, 1)],
      ],
    )
  })

  it('gets smaller in a batch whose newest request repeats the whole thread', async () => {
    const { says, positions } = aThread()
    await outcomesOf(says(2, q('a'), q('b')))
    const batch = [says(3, q('b'), q('a')), says(1, q('b'))]
    const answers = await storeOnce(commands, batch)
    for (const { source } of answers.values()) assert.equal(source.outcome, 'unchanged')
    assert.deepEqual(await positions(), { b: at(1, 0), a: at(2, 0) })
  })
})
