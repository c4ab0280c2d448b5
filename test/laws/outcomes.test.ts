import assert from 'node:assert/strict'
import type { QuoteFields } from '@sluice/contract'
import { isLive, type PostRequest, type StoredAnswer } from '@sluice/store'
import { describe, it } from 'vitest'
import { createMemoryDatabase } from './explorer/memory-database.ts'
import { requestOf } from './support/histories.ts'
import { interruptedBefore } from './support/interrupted.ts'
import { storeOnce } from './support/store-all.ts'

// The outcomes of a request whose documents other requests write over while it is stored.

const quote = (externalId: string, text = 'two words'): QuoteFields => ({ externalId, text })

function request(place: number, title: string, quotes: QuoteFields[]): PostRequest {
  return requestOf({ source: { service: 'slack', externalId: 't1', title }, quotes }, place)
}

function outcomesOf(answer: StoredAnswer | undefined) {
  return { source: answer?.source.outcome, quotes: answer?.quotes.map(({ outcome }) => outcome) }
}

describe('a request is answered `updated`', () => {
  it('if a newer request replaced its title after its opening, and before it was stored', async () => {
    const { commands, all } = createMemoryDatabase()
    await storeOnce(commands, [request(1, 'old title', [quote('q1'), quote('q2')])])
    const isQuoteUpdate = (kind: string, name: string) => kind === 'update' && name === 'quotes'
    const titles: unknown[] = []
    const interrupted = interruptedBefore(commands, isQuoteUpdate, async () => {
      titles.push(all('sources').filter(isLive)[0]?.title)
      await storeOnce(commands, [request(6, 'newest title', [quote('q1', 'other text')])])
    })
    const slow = request(5, 'new title', [quote('q1')])
    const answers = await storeOnce(interrupted, [slow])
    assert.deepEqual(titles, ['new title'], 'the request changed the source')
    assert.deepEqual(outcomesOf(answers.get(slow.id)), { source: 'updated', quotes: ['updated'] })
  })

  it('if its update of the source took effect and was overwritten before its process looked at the version', async () => {
    const { commands, all } = createMemoryDatabase()
    await storeOnce(commands, [
      requestOf({ source: { service: 'slack', externalId: 't2', title: 'title' }, quotes: [] }, 1),
    ])
    await storeOnce(commands, [request(2, 'old title', [])])
    // The update of the second thread is refused, so the process looks at the versions of both.
    const other = (place: number, title: string) =>
      requestOf({ source: { service: 'slack', externalId: 't2', title }, quotes: [] }, place)
    const isUpdate = (kind: string) => kind === 'update'
    const refusing = interruptedBefore(commands, isUpdate, () =>
      storeOnce(commands, [other(7, 'of another')]),
    )
    const titles: unknown[] = []
    const isLook = (kind: string) => kind === 'findVersions'
    const interrupted = interruptedBefore(refusing, isLook, async () => {
      titles.push(
        all('sources')
          .filter(isLive)
          .find(({ externalId }) => externalId === 't1')?.title,
      )
      await storeOnce(commands, [request(6, 'newest title', [])])
    })
    const slow = request(5, 'new title', [])
    const answers = await storeOnce(interrupted, [slow, other(4, 'too old')])
    assert.deepEqual(titles, ['new title'], 'the request changed the source')
    assert.deepEqual(outcomesOf(answers.get(slow.id)), { source: 'updated', quotes: [] })
  })

  it('for a quote whose update took effect and was overwritten before its process looked at the version', async () => {
    const { commands, all } = createMemoryDatabase()
    await storeOnce(commands, [request(1, 'title', [quote('q1'), quote('q2'), quote('q3')])])
    const isQuoteUpdate = (kind: string, name: string) => kind === 'update' && name === 'quotes'
    const refusing = interruptedBefore(commands, isQuoteUpdate, () =>
      storeOnce(commands, [request(6, 'title', [quote('q1')])]),
    )
    const isLook = (kind: string, name: string) => kind === 'findVersions' && name === 'quotes'
    const texts: unknown[] = []
    const interrupted = interruptedBefore(refusing, isLook, async () => {
      texts.push(...all('quotes').map(({ text }) => text))
      await storeOnce(commands, [request(7, 'title', [quote('q2', 'of C')])])
    })
    const slow = request(5, 'title', [quote('q1'), quote('q2', 'of A')])
    const answers = await storeOnce(interrupted, [slow])
    assert(texts.includes('of A'), 'the request changed the quote')
    assert.deepEqual(outcomesOf(answers.get(slow.id)).quotes?.[1], 'updated')
  })
})

it('a request is answered `unchanged` if newer ones had replaced all of its fields before', async () => {
  const { commands } = createMemoryDatabase()
  await storeOnce(commands, [request(1, 'title', [quote('q1')])])
  await storeOnce(commands, [request(6, 'newest title', [quote('q1', 'newest text')])])
  const late = request(5, 'new title', [quote('q1', 'text')])
  const answers = await storeOnce(commands, [late])
  assert.deepEqual(outcomesOf(answers.get(late.id)), { source: 'unchanged', quotes: ['unchanged'] })
})
