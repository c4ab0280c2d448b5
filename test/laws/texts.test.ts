import assert from 'node:assert/strict'
import type { PostRequest } from '@sluice/store'
import { beforeAll, beforeEach, describe, it } from 'vitest'
import { aThread } from './support/a-thread.ts'
import { openStore } from './support/open-store.ts'
import { storeOnce } from './support/store-all.ts'

// A worker's memory must not depend on the length of stored texts: they are read only where an
// answer must show one that the request does not give.

describe('stored texts', () => {
  const { client, commands, quotes } = openStore('texts', { monitorCommands: true })
  let reads: ('whole' | 'without texts')[] = []

  beforeAll(() => {
    client.on('commandStarted', ({ commandName, command }) => {
      if (commandName === 'find' && command.find === 'quotes')
        reads.push(command.projection?.text === 0 ? 'without texts' : 'whole')
    })
  })
  beforeEach(() => {
    reads = []
  })

  async function storing(request: PostRequest) {
    reads = []
    const answer = (await storeOnce(commands, [request])).get(request.id)
    assert(answer !== undefined)
    return {
      reads,
      texts: answer.quotes.map(({ text }) => text),
      outcomes: answer.quotes.map((one) => one.outcome),
    }
  }
  const text = (externalId: string, value: string) => ({ externalId, text: value })

  it('are not read for a request that gives the same ones, or newer ones', async () => {
    const { says } = aThread()
    await storing(says(1, text('a', 'one'), text('b', 'two')))
    assert.deepEqual(await storing(says(2, text('a', 'one'), text('b', 'two more'))), {
      reads: ['without texts'],
      texts: ['one', 'two more'],
      outcomes: ['unchanged', 'updated'],
    })
  })

  it('are read where they are newer than the request and differ, and only those', async () => {
    const { says } = aThread()
    await storing(says(2, text('a', 'newer'), text('b', 'two')))
    const older = { ...says(1, text('a', 'older'), text('b', 'two')) }
    assert.deepEqual(await storing(older), {
      reads: ['without texts', 'whole'],
      texts: ['newer', 'two'],
      outcomes: ['unchanged', 'unchanged'],
    })
  })

  it('survive a request that is older and gives another field', async () => {
    const { says, sourceId } = aThread()
    await storing(says(2, text('a', 'newer')))
    await storing(says(1, { ...text('a', 'older'), speaker: 'ada' }))
    const [stored] = await quotes.find({ sourceId }).toArray()
    assert.deepEqual([stored?.text, stored?.speaker, stored?.wordCount], ['newer', 'ada', 1])
  })

  it('that a tool changed, and whose digests it removed, are read', async () => {
    const { says, sourceId } = aThread()
    await storing(says(1, text('a', 'one'), text('b', 'two')))
    await quotes.updateMany(
      { sourceId },
      { $set: { text: 'by hand' }, $unset: { 'meta.textDigest': '' } },
    )
    const again = await storing(says(2, text('a', 'by hand'), text('b', 'other')))
    assert.deepEqual(again.reads, ['without texts', 'whole'])
    assert.deepEqual(again.outcomes, ['unchanged', 'updated'])
  })
})
