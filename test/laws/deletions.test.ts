import assert from 'node:assert/strict'
import {
  createBatchStore,
  type DeletedAnswer,
  type DeleteRequest,
  forgetDeletions,
  processRuntime,
  refusalOf,
  repairSources,
  type StoreCommands,
  type StoreRequest,
} from '@sluice/store'
import { quoteIdOf } from '@sluice/store/ids'
import { createSourceReads } from '@sluice/store/read'
import { BSON } from 'mongodb'
import { describe, it } from 'vitest'
import { aThread as someThread } from './support/a-thread.ts'
import { openStore, quickToSum } from './support/open-store.ts'
import { QUOTES } from './support/open-threads.ts'
import { pausedAt } from './support/paused-at.ts'
import { storeOnce } from './support/store-all.ts'

// Law 6, step by step on the real server.

const NOBODY = new AbortController().signal
const quote = (externalId: string, text = 'two words') => ({ externalId, text })

describe('a deleted thread', () => {
  const { db, commands, sources, quotes } = openStore('deletions')
  const { readSource, readSources } = createSourceReads(db)

  function aThread() {
    const { says, sourceId } = someThread()
    const quoteId = (externalId: string) => quoteIdOf(sourceId, externalId)
    /** Deletes these quotes, or the whole thread. */
    const deletionOf = (place: number, ...externalIds: string[]): DeleteRequest => {
      const quoteIds = externalIds.map(quoteId)
      return { ...deletion(place), deletes: { sourceId, quoteIds } }
    }
    const deletion = (place: number, tenant = 'acme'): DeleteRequest => {
      const id = `${sourceId}-${tenant}-${place}`
      const stamp = place * 1_000_000
      return { id, tenant, stamp, redelivered: false, deletes: { sourceId } }
    }
    async function store(...requests: StoreRequest[]): Promise<unknown[]> {
      const answers = await storeOnce(commands, requests, quickToSum)
      return requests.map(({ id }) => {
        const answer = answers.get(id)
        if (answer === undefined || 'outcome' in answer) return answer
        return [answer.source, ...answer.quotes].map(({ outcome }) => outcome)
      })
    }
    /** What callers see, and what is stored of it. */
    async function found() {
      const page = await readSource('acme', sourceId, { limit: 10 }, NOBODY)
      const { sources: byId } = await readSources('acme', [sourceId], NOBODY)
      assert.equal(byId.length, page === undefined ? 0 : 1)
      const source = await sources.findOne({ _id: sourceId })
      return {
        texts: page?.quotes.map(({ text }) => text),
        totals: [source?.quoteCount, source?.wordCount],
        stored: await quotes.countDocuments({ sourceId }),
      }
    }
    const document = async () => await sources.findOne({ _id: sourceId })
    return { says, sourceId, deletion, deletionOf, store, found, document }
  }

  const deleted = (count: number): DeletedAnswer => ({ outcome: 'deleted', quotes: count })
  const ABSENT: DeletedAnswer = { outcome: 'absent', quotes: 0 }

  it('is answered once its quotes are gone, although the time of its batch is up', async () => {
    const threads = Array.from({ length: 6 }, aThread)
    for (const { says, store } of threads) await store(says(1, quote('q1')))
    let passedMs = 0
    const runtime = { ...processRuntime, monotonic: () => performance.now() + passedMs }
    const slow: StoreCommands = {
      ...commands,
      async removeQuotes(...args) {
        passedMs += 2_000
        return commands.removeQuotes(...args)
      },
    }
    const answers = await createBatchStore(slow, runtime).store(
      threads.map(({ deletion }) => deletion(2)),
    )
    assert.deepEqual([...answers.values()], Array(threads.length).fill(deleted(1)))
  })

  it('leaves a tombstone without a word of it', async () => {
    const { says, deletion, store, found, sourceId, document } = aThread()
    await store(says(1, quote('q1'), quote('q2')))
    assert.deepEqual(await store(deletion(2)), [deleted(2)])
    assert.deepEqual(await found(), { texts: undefined, totals: [0, 0], stored: 0 })
    const { version: _, epoch: _epoch, ...meta } = (await document())?.meta ?? {}
    assert.deepEqual(
      { ...(await document()), meta },
      {
        _id: sourceId,
        wordCount: 0,
        quoteCount: 0,
        meta: {
          deletion: { stamp: 2_000_000, tenant: 'acme', request: deletion(2).id, quotes: 2 },
        },
      },
    )
  })

  it('is stored again by a later post, with no field and no quote of before, and not by an older one', async () => {
    const { says, deletion, store, found, document } = aThread()
    await store(says(1, { ...quote('q1'), speaker: 'ann' }, quote('q2')))
    await store(deletion(5))
    const nothing = { texts: undefined, totals: [0, 0], stored: 0 }
    assert.deepEqual(await store(says(4, quote('q1'), quote('q3'))), [
      ['deleted', 'deleted', 'deleted'],
    ])
    assert.deepEqual(await found(), nothing)
    assert.deepEqual(await store({ ...says(1, quote('q1')), redelivered: true }), [
      ['deleted', 'deleted'],
    ])
    assert.deepEqual(await store(says(6, quote('q1', 'new')), says(3, quote('q1', 'old'))), [
      ['created', 'created'],
      ['deleted', 'deleted'],
    ])
    assert.deepEqual(await found(), { texts: ['new'], totals: [1, 1], stored: 1 })
    assert.equal((await document())?.acceptedAt.getTime(), 6_000)
    assert.equal((await quotes.findOne({ text: 'new' }))?.speaker, undefined)
    assert.deepEqual(await store(says(7, quote('q1', 'new'))), [['unchanged', 'unchanged']])
  })

  it('leaves a tombstone even if it was absent, so that a post that was accepted before stores nothing', async () => {
    const { says, deletion, store, found } = aThread()
    assert.deepEqual(await store(deletion(2)), [ABSENT])
    assert.deepEqual(await store(says(1, quote('q1'))), [['deleted', 'deleted']])
    assert.deepEqual(await store(says(3, quote('q1'))), [['created', 'created']])
    assert.deepEqual(await found(), { texts: ['two words'], totals: [1, 2], stored: 1 })
    assert.deepEqual(await store({ ...deletion(2), redelivered: true }), [ABSENT])
    assert.deepEqual(await found(), { texts: ['two words'], totals: [1, 2], stored: 1 })
  })

  it('answers each delivery of the deletion with the same, and an older deletion with `absent`', async () => {
    const { says, deletion, store, found } = aThread()
    await store(says(1, quote('q1'), quote('q2')))
    assert.deepEqual(await store(deletion(3)), [deleted(2)])
    await store(says(4, quote('q1')))
    assert.deepEqual(await store(deletion(3)), [deleted(2)])
    assert.deepEqual(await store(deletion(2)), [ABSENT])
    assert.deepEqual((await found()).totals, [1, 2])
    assert.deepEqual(await store(deletion(5), deletion(6)), [ABSENT, deleted(1)])
  })

  it('keeps what later posts said, if they were stored before the deletion', async () => {
    const { says, deletion, store, found, document } = aThread()
    await store(says(1, { ...quote('q1'), speaker: 'ann', upVotes: 3 }, quote('q2'), quote('q3')))
    await store(says(5, quote('q1'), { ...quote('q4'), speaker: 'bob' }))
    await store(says(7, quote('q2', 'changed')))
    assert.deepEqual(await store(deletion(4)), [deleted(1)])
    assert.deepEqual(await found(), {
      texts: ['two words', 'two words', 'changed'],
      totals: [3, 5],
      stored: 3,
    })
    const stored = await quotes.find({ sourceId: (await document())?._id ?? '' }).toArray()
    assert.deepEqual(
      stored.map(({ externalId, speaker, score, upVotes }) => [
        externalId,
        speaker,
        score,
        upVotes,
      ]),
      [
        ['q1', undefined, undefined, undefined],
        ['q2', undefined, undefined, undefined],
        ['q4', 'bob', undefined, undefined],
      ].sort(),
    )
    // The title has the stamp of the last post: when the first was accepted is not known any more.
    assert.equal((await document())?.acceptedAt.getTime(), 7_000)
    assert.equal((await document())?.createdAt.getTime(), 7_000)
  })

  it('is another tenant’s to nobody: a deletion by id is `absent`, and counts against no post', async () => {
    const { says, deletion, store, document, found } = aThread()
    await store(says(1, quote('q1')))
    const before = await document()
    assert.deepEqual(await store(deletion(2, 'other')), [ABSENT])
    assert.deepEqual(await document(), before)

    assert.deepEqual(await store(deletion(3)), [deleted(1)])
    assert.deepEqual(await store(deletion(5, 'other')), [ABSENT])
    assert.deepEqual(await store(says(2, quote('q1'))), [['deleted', 'deleted']])
    assert.deepEqual(await store(says(4, quote('q1'))), [['created', 'created']])
    const { tenant, others } = (await document())?.meta.deletion ?? {}
    assert.deepEqual([tenant, others], ['acme', undefined])
    assert.deepEqual(await store(says(3, quote('q2'))), [['deleted', 'deleted']])
    assert.deepEqual(await found(), { texts: ['two words'], totals: [1, 2], stored: 1 })
  })

  it('is stored by its tenant’s post, if another tenant’s deletion hid a quote of an earlier attempt', async () => {
    const { says, sourceId, deletion, store, found } = aThread()
    await store(says(1, quote('q1')))
    const left = await quotes.find({ sourceId }).toArray()
    await Promise.all([sources.deleteOne({ _id: sourceId }), quotes.deleteMany({ sourceId })])
    await store(deletion(2, 'other'))
    await quotes.insertMany(left)
    const post = { ...says(1, quote('q1')), redelivered: true }
    const token = { request: post.id, writer: 'dead', batch: 1, since: new Date() }
    await sources.updateOne({ _id: sourceId }, { $set: { 'meta.tokens': [token] } })
    await store(post)
    assert.deepEqual(await found(), { texts: ['two words'], totals: [1, 2], stored: 1 })
  })

  it('hides the quotes of a writer that is late, until the writer finds that it was deleted', async () => {
    const { says, deletion, store, found } = aThread()
    await store(says(1, quote('q1')))
    // The writer removes its quote in the background, so it waits until the test has looked.
    const looked = Promise.withResolvers<void>()
    const removeQuotes: StoreCommands['removeQuotes'] = async (...some) => {
      await looked.promise
      return commands.removeQuotes(...some)
    }
    const slow = pausedAt({ ...commands, removeQuotes }, QUOTES)
    const writer = createBatchStore(slow.commands)
    const storing = writer.store([says(2, quote('q2'))])
    await slow.reached
    assert.deepEqual(await store(deletion(3)), [deleted(2)])
    assert.deepEqual(await store(says(4, quote('q3'))), [['created', 'created']])
    slow.release()
    await storing
    assert.deepEqual(await found(), { texts: ['two words'], totals: [1, 2], stored: 2 })
    looked.resolve()
    await writer.settle()
    assert.deepEqual(await found(), { texts: ['two words'], totals: [1, 2], stored: 1 })
  })

  it('keeps a quote that a later post writes while its older state is being removed', async () => {
    const { says, deletion, found, store } = aThread()
    await store(says(1, quote('q1')))
    const slow = pausedAt(commands, QUOTES)
    const writer = createBatchStore(slow.commands)
    const storing = writer.store([says(3, quote('q1', 'later'))])
    await slow.reached
    const removeQuotes: StoreCommands['removeQuotes'] = async (...some) => {
      slow.release()
      await storing
      return commands.removeQuotes(...some)
    }
    await storeOnce({ ...commands, removeQuotes }, [deletion(2)], quickToSum)
    await writer.settle()
    assert.deepEqual(await found(), { texts: ['later'], totals: [1, 1], stored: 1 })
  })

  it('has its late quotes removed by a repair, which names no tombstone', async () => {
    const { says, deletion, store, found, sourceId } = aThread()
    await store(says(1, quote('q1')))
    const late = await quotes.findOne({ sourceId })
    await store(deletion(2))
    assert(late !== null)
    await quotes.insertOne(late)
    const { wrong } = await repairSources(commands, { repair: true })
    assert.deepEqual(
      wrong.map(({ id }) => id),
      [sourceId],
    )
    assert.deepEqual(await found(), { texts: undefined, totals: [0, 0], stored: 0 })
    assert.deepEqual((await repairSources(commands, { repair: false })).wrong, [])
  })

  it('does not show a late quote of a dead writer when a later post is repeated', async () => {
    const { says, deletion, store, found, sourceId } = aThread()
    await store(says(1, quote('q1'), quote('q2')))
    const late = await quotes.findOne({ sourceId, externalId: 'q1' })
    await store(deletion(2))
    await store(says(3, quote('q2')))
    assert(late !== null)
    await quotes.insertOne(late)
    // The repeat gives the source a cover, a stamp that counts for all of its quotes.
    assert.deepEqual(await store(says(4, quote('q2'))), [['unchanged', 'unchanged']])
    assert.equal((await sources.findOne({ _id: sourceId }))?.meta.cover, 4_000_000)
    assert.deepEqual(await found(), { texts: ['two words'], totals: [1, 2], stored: 2 })
    assert.deepEqual(await store(says(5, quote('q1'))), [['updated', 'created']])
    assert.deepEqual((await found()).totals, [2, 4])
  })

  it('leaves its tombstone for 31 days, and a repair then removes it', async () => {
    const { says, deletion, store, document } = aThread()
    const day = 24 * 3_600_000
    const now = 40 * day
    await store(deletion((now - 31 * day) / 1_000))
    const repair = (ms: number) =>
      forgetDeletions(commands, { ...processRuntime, now: () => now + ms })
    await repair(0)
    assert.notEqual(await document(), null)
    await repair(1)
    assert.equal(await document(), null)
    await store(says(1, quote('q1')), deletion(2), says(3, quote('q1')))
    await repair(now)
    assert.notEqual(await document(), null)
  })

  it('loses hundreds of quotes, of which a later post keeps some', async () => {
    const { says, deletion, store, found } = aThread()
    const all = Array.from({ length: 600 }, (_, at) => quote(`q${at}`))
    await store(says(1, ...all))
    await store(says(3, ...all.slice(0, 300)))
    assert.deepEqual(await store(deletion(2)), [deleted(300)])
    const { totals, stored } = await found()
    assert.deepEqual([totals, stored], [[300, 600], 300])
  })

  it('is deleted in a batch with other requests', async () => {
    const threads = [aThread(), aThread(), aThread()]
    const [first, second, third] = threads
    assert(first && second && third)
    await first.store(first.says(1, quote('q1')), second.says(2, quote('q1')))
    const batch = [
      third.says(3, quote('q1')),
      first.deletion(4),
      second.deletion(5),
      first.says(6, quote('q1')),
      second.says(4, quote('q1')),
    ]
    assert.deepEqual(await first.store(...batch), [
      ['created', 'created'],
      deleted(1),
      deleted(1),
      ['created', 'created'],
      ['deleted', 'deleted'],
    ])
    const seen = await Promise.all(threads.map(({ found }) => found()))
    assert.deepEqual(
      seen.map(({ texts }) => texts),
      [['two words'], undefined, ['two words']],
    )
  })

  describe('loses only the quotes that a deletion names', () => {
    it('and is exact; an older post stores all others, a later one stores all', async () => {
      const { says, deletionOf, store, found } = aThread()
      const reply = { ...quote('q2', 'a reply'), replyingTo: 'q1' }
      await store(says(1, quote('q1'), reply))
      assert.deepEqual(await store(deletionOf(5, 'q1')), [deleted(1)])
      assert.deepEqual(await found(), { texts: ['a reply'], totals: [1, 2], stored: 1 })
      assert.equal((await quotes.findOne({ text: 'a reply' }))?.replyingTo, 'q1')
      assert.deepEqual(await store(says(4, quote('q1', 'old'), quote('q3'))), [
        ['updated', 'deleted', 'created'],
      ])
      assert.deepEqual((await found()).totals, [2, 4])
      const later = says(6, quote('q1', 'new'), reply, quote('q3'))
      assert.deepEqual(await store(later), [['updated', 'created', 'unchanged', 'unchanged']])
      assert.deepEqual((await found()).totals, [3, 5])
      assert.deepEqual(await store({ ...says(1, quote('q1')), redelivered: true }), [
        ['created', 'deleted'],
      ])
      assert.deepEqual((await found()).totals, [3, 5])
    })

    it('and answers each delivery with the same, and `absent` for quotes that are not there', async () => {
      const { says, deletion, deletionOf, store, found } = aThread()
      await store(says(1, quote('q1'), quote('q2')))
      assert.deepEqual(await store(deletionOf(2, 'q1', 'q9')), [deleted(1)])
      assert.deepEqual(await store(deletionOf(2, 'q1', 'q9')), [deleted(1)])
      assert.deepEqual(await store(deletionOf(4, 'q8')), [ABSENT])
      assert.deepEqual(await store(says(3, quote('q8'), quote('q9'))), [
        ['updated', 'deleted', 'created'],
      ])
      assert.deepEqual((await found()).totals, [2, 4])
      assert.deepEqual(await store(deletion(5)), [deleted(2)])
      assert.deepEqual(await store(deletionOf(4, 'q2')), [ABSENT])
    })

    it('even if it is not stored yet', async () => {
      const { says, deletionOf, store, found } = aThread()
      assert.deepEqual(await store(deletionOf(2, 'q1')), [ABSENT])
      assert.equal((await found()).texts, undefined)
      assert.deepEqual(await store(says(1, quote('q1'), quote('q2'))), [
        ['created', 'deleted', 'created'],
      ])
      assert.deepEqual(await found(), { texts: ['two words'], totals: [1, 2], stored: 1 })
      // An equal post is no repeat: the deleted quote is stored again.
      assert.deepEqual(await store(says(3, quote('q1'), quote('q2'))), [
        ['updated', 'created', 'unchanged'],
      ])
    })

    it('by many deletions in one sum, each up to its own stamp and with its own count', async () => {
      const { says, deletionOf, store } = aThread()
      await store(says(1, quote('q1'), quote('q2'), quote('q3')))
      const many = [deletionOf(2, 'q1'), deletionOf(4, 'q2', 'q9'), deletionOf(5, 'q8')]
      const answers = await createBatchStore(commands, quickToSum).store(many)
      assert.deepEqual(
        many.map(({ id }) => answers.get(id)),
        [deleted(1), deleted(1), ABSENT],
      )
      assert.deepEqual(await store(says(3, quote('q1'), quote('q2'))), [
        ['updated', 'created', 'deleted'],
      ])
    })

    it('by two deletions, of which the first is older than a repeat of the thread', async () => {
      const { says, deletionOf, store, found } = aThread()
      const both = [quote('q1'), quote('q2', 'gone')]
      await store(says(1, ...both))
      await store(says(3, ...both))
      const two = [deletionOf(2, 'q1'), deletionOf(4, 'q2')]
      assert.deepEqual(await store(...two), [ABSENT, deleted(1)])
      assert.deepEqual(await found(), { texts: ['two words'], totals: [1, 2], stored: 1 })
    })

    it('up to 10,000 of a thread, so that its document stays small: one more is refused, and posts go on', async () => {
      const { says, deletion, deletionOf, store, document } = aThread()
      await store(says(1, quote('q1'), quote('q2')))
      const many = Array.from({ length: 9_999 }, (_, at) => `absent ${at}`)
      await store(deletionOf(2, ...many))
      assert.deepEqual(await store(deletionOf(3, 'q1')), [deleted(1)])
      const one = deletionOf(4, 'q2')
      const isRefused = (error: unknown) =>
        /more than 10000 quotes/.test(refusalOf(error, one)?.message ?? '')
      await assert.rejects(store(one), isRefused)
      assert.deepEqual(await store(says(5, quote('q3'))), [['updated', 'created']])
      assert(BSON.calculateObjectSize((await document()) ?? {}) < 400_000)
      assert.deepEqual(await store(deletion(6)), [deleted(2)])
      assert.deepEqual(await store(deletionOf(7, 'q2')), [ABSENT])
    })

    it('if they are not newer than the deletion', async () => {
      const { says, deletionOf, store, found } = aThread()
      await store(says(1, { ...quote('q1'), speaker: 'ann' }, quote('q2')))
      await store(says(3, quote('q1', 'newer')))
      assert.deepEqual(await store(deletionOf(2, 'q1', 'q2')), [deleted(1)])
      assert.deepEqual(await found(), { texts: ['newer'], totals: [1, 1], stored: 1 })
      assert.equal((await quotes.findOne({ text: 'newer' }))?.speaker, undefined)
    })
  })
})
