import assert from 'node:assert/strict'
import { tmpdir } from 'node:os'
import { describe, test } from 'vitest'
import { createExternalSort } from './external-sort.ts'

/** A mail: its id, and its references, the parent last. */
type Mail = readonly [id: string, ...references: string[]]

/** The conversations of these mails: of each its topmost id, its other ids, and its mails. */
async function conversationsOf(mails: readonly Mail[]) {
  await using sort = createExternalSort({ folder: tmpdir(), signal: new AbortController().signal })
  for (const [id, ...references] of mails)
    await sort.add({ key: id, order: id, text: JSON.stringify(id), references })
  const found = new Map<string, { ids: string[]; mails: string[] }>()
  for await (const list of sort.sorted()) {
    for (const { key, text } of list) {
      const of = found.get(key) ?? { ids: [], mails: [] }
      found.set(key, of)
      const record = JSON.parse(text)
      if (typeof record === 'string') of.mails.push(record)
      else of.ids.push(...record.ids)
    }
  }
  return Object.fromEntries(
    Array.from(found, ([top, { ids, mails: some }]) => [
      top,
      `${some.join(' ')} / ${ids.toSorted().join(' ')}`,
    ]),
  )
}

/** The mails in their order, and in the reverse one. */
async function inAnyOrder(mails: readonly Mail[]) {
  const conversations = await conversationsOf(mails)
  assert.deepEqual(await conversationsOf(mails.toReversed()), conversations)
  return conversations
}

describe('the conversations of mails', () => {
  test('are chains of parents', async () => {
    const mails: Mail[] = [['a'], ['b', 'a'], ['c', 'a', 'b'], ['x'], ['y', 'x']]
    assert.deepEqual(await inAnyOrder(mails), { a: 'a b c / a b c', x: 'x y / x y' })
  })

  test('are found if mails name their parents only', async () => {
    assert.deepEqual(await inAnyOrder([['a'], ['b', 'a'], ['c', 'b'], ['d', 'c']]), {
      a: 'a b c d / a b c d',
    })
  })

  test('are found if references are truncated at their beginning or in their middle', async () => {
    const mails: Mail[] = [['a'], ['b', 'a'], ['c', 'a', 'b'], ['d', 'c'], ['e', 'a', 'd']]
    assert.deepEqual(await inAnyOrder(mails), { a: 'a b c d e / a b c d e' })
  })

  test('are named after the topmost id, also if that mail is missing', async () => {
    assert.deepEqual(
      await inAnyOrder([
        ['c', 'a', 'b'],
        ['d', 'b'],
      ]),
      { a: 'c d / a b c d' },
    )
  })

  test("are joined by a mail whose parent's own references were lost", async () => {
    assert.deepEqual(await inAnyOrder([['a'], ['b'], ['c', 'a', 'b']]), { a: 'a b c / a b c' })
  })

  test('keep the parent that a mail names, whatever other mails say of it', async () => {
    assert.deepEqual(await inAnyOrder([['p'], ['b', 'p'], ['a'], ['c', 'a', 'b']]), {
      p: 'b c p / b c p',
      a: 'a / a',
    })
  })

  test('have ids of no mail that are above a mail which has another parent', async () => {
    assert.deepEqual(await inAnyOrder([['p'], ['b', 'p'], ['c', 'a', 'b']]), {
      p: 'b c p / a b c p',
    })
  })

  test('have no loops', async () => {
    const loop = await conversationsOf([
      ['a', 'b'],
      ['b', 'a'],
      ['c', 'c', 'b'],
      ['d', 'd'],
    ])
    assert.deepEqual(loop, { b: 'a b c / a b c', d: 'd / d' })
  })

  test('have both copies of a mail, with the references of the first one that has any', async () => {
    assert.deepEqual(await conversationsOf([['a'], ['b'], ['b', 'a'], ['b', 'x']]), {
      a: 'a b b b / a b x',
    })
  })

  test('are the same for ten thousand mails that name their parents only, in any order', async () => {
    const chain: Mail[] = Array.from({ length: 10_000 }, (_, at) =>
      at === 0 ? ['m0'] : [`m${at}`, `m${at - 1}`],
    )
    for (const mails of [chain, chain.toReversed(), chain.toSorted(([a], [b]) => (a < b ? -1 : 1))])
      assert.deepEqual(Object.keys(await conversationsOf(mails)), ['m0'])
  })
})
