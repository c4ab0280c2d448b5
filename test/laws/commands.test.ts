import assert from 'node:assert/strict'
import type { CollectionName, SourceTotals, StoreCommands } from '@sluice/store'
import { type Document, ObjectId } from 'mongodb'
import { beforeEach, describe, it } from 'vitest'
import { createMemoryDatabase } from './explorer/memory-database.ts'
import { openStore } from './support/open-store.ts'

// Holds the commands in memory, on which the explorer runs the store, and those on a real server to
// the same behaviour: each case runs on both.

const [V1, V2, V3, E1] = ['1', '2', '3', '4'].map((digit) => new ObjectId(digit.repeat(24)))

const source = (_id: string, more: Document = {}): Document => {
  return {
    _id,
    title: 'title',
    wordCount: 1,
    quoteCount: 2,
    meta: { version: V1, stamp: 1 },
    ...more,
  }
}
const quote = (_id: string, sourceId: string, wordCount: number, more: Document = {}): Document => {
  return { _id, sourceId, text: 'text', wordCount, meta: { version: V1, stamp: 1 }, ...more }
}
/** The id of a source, with which those of its quotes begin. */
const [S, T] = ['s'.repeat(24), 't'.repeat(24)] as const

type Act = (commands: StoreCommands) => Promise<unknown>

/** The documents of these ids, in the order of the ids: a server may return them in any order. */
async function read(
  commands: StoreCommands,
  name: CollectionName,
  ...ids: string[]
): Promise<Document[]> {
  return byId(await commands.find(name, ids))
}

function byId<Found extends { _id: string }>(found: readonly Found[]): Found[] {
  return found.toSorted((one, other) => (one._id < other._id ? -1 : 1))
}

/** Stores `a`, updates it by these statements and returns the reply and what is stored. */
function updating(before: Document, ...statements: { q?: Document; u: Document }[]): Act {
  return async (commands) => {
    await commands.insert('sources', [source('a', before)])
    const written = await commands.update(
      'sources',
      statements.map(({ q, ...rest }) => ({ q: { _id: 'a', ...q }, ...rest })),
    )
    return { written, stored: await read(commands, 'sources', 'a') }
  }
}

const NONE = { n: 0, refused: [] }
const ONE = { n: 1, refused: [] }

describe('the commands in memory and on a server behave the same:', () => {
  const { db, commands: onServer } = openStore('commands')

  beforeEach(async () => {
    for (const name of ['sources', 'quotes', 'writers']) await db.collection(name).deleteMany({})
  })

  /** Checks that the database in memory and the server both do what is expected. */
  function both(name: string, act: Act, expected: unknown): void {
    it(name, async () => {
      const inMemory = await act(createMemoryDatabase().commands)
      assert.deepEqual(plain(inMemory), plain(await act(onServer)), 'they differ')
      assert.deepEqual(plain(inMemory), plain(expected))
    })
  }

  describe('find', () => {
    both(
      'returns the documents that exist, each once',
      async (commands) => {
        await commands.insert('sources', [source('b'), source('a'), source('c')])
        return [
          await read(commands, 'sources', 'c', 'absent', 'a', 'c'),
          await read(commands, 'quotes', 'a'),
        ]
      },
      [[source('a'), source('c')], []],
    )

    both(
      'returns nothing for no ids',
      async (commands) => {
        await commands.insert('sources', [source('a')])
        return commands.find('sources', [])
      },
      [],
    )

    both(
      'returns dates, ids, lists and text as they were written, and null for undefined',
      async (commands) => {
        const createdAt = new Date('2024-05-01T00:00:00.123Z')
        const tokens = [{ request: 'r', since: createdAt, writer: 'w', batch: 1, excludes: true }]
        const meta = {
          version: V2,
          epoch: E1,
          stamp: 1_700_000_000_000_000,
          tokens,
          derived: ['score'],
        }
        await commands.insert('sources', [
          source('a', { createdAt, meta, url: undefined, score: -0.5, title: 'a\0b ส' }),
        ])
        return read(commands, 'sources', 'a')
      },
      [
        source('a', {
          createdAt: new Date('2024-05-01T00:00:00.123Z'),
          url: null,
          score: -0.5,
          title: 'a\0b ส',
          meta: {
            version: V2,
            epoch: E1,
            stamp: 1_700_000_000_000_000,
            tokens: [
              {
                request: 'r',
                since: new Date('2024-05-01T00:00:00.123Z'),
                writer: 'w',
                batch: 1,
                excludes: true,
              },
            ],
            derived: ['score'],
          },
        }),
      ],
    )
  })

  describe('findWithoutTexts', () => {
    both(
      'returns the quotes that are there, whole but for their texts',
      async (commands) => {
        await commands.insert('quotes', [
          quote(`${S}b`, S, 2),
          quote(`${T}a`, T, 1),
          quote(`${S}c`, S, 3),
        ])
        return byId(await commands.findWithoutTexts([`${S}b`, 'absent', `${T}a`]))
      },
      [
        { _id: `${S}b`, sourceId: S, wordCount: 2, meta: { version: V1, stamp: 1 } },
        { _id: `${T}a`, sourceId: T, wordCount: 1, meta: { version: V1, stamp: 1 } },
      ],
    )
  })

  describe('findVersions', () => {
    both(
      'returns only versions and epochs',
      async (commands) => {
        await commands.insert('sources', [
          source('a', { meta: { version: V1, epoch: E1, stamp: 1 } }),
          source('b'),
        ])
        return byId(await commands.findVersions('sources', ['b', 'absent', 'a']))
      },
      [
        { _id: 'a', meta: { version: V1, epoch: E1 } },
        { _id: 'b', meta: { version: V1 } },
      ],
    )

    both(
      'omits documents without an epoch on request',
      async (commands) => {
        await commands.insert('sources', [
          source('a', { meta: { version: V1, epoch: E1, stamp: 1 } }),
          source('b'),
        ])
        return commands.findVersions('sources', ['b', 'a'], 'withEpoch')
      },
      [{ _id: 'a', meta: { version: V1, epoch: E1 } }],
    )

    both(
      'reads the versions of quotes',
      async (commands) => {
        await commands.insert('quotes', [quote(`${S}q`, S, 1)])
        return commands.findVersions('quotes', [`${S}q`])
      },
      [{ _id: `${S}q`, meta: { version: V1 } }],
    )
  })

  describe('sumQuotes', () => {
    both(
      'sums the quotes of each source, and omits a source without quotes',
      async (commands) => {
        await commands.insert('sources', [source('a'), source('b'), source('empty')])
        await commands.insert('quotes', [
          quote('a1', 'a', 3),
          quote('a2', 'a', 4),
          quote('b1', 'b', 0),
          quote('c1', 'c', 9),
        ])
        return byId(await commands.sumQuotes(['b', 'empty', 'a']))
      },
      [
        { _id: 'a', wordCount: 7, quoteCount: 2 },
        { _id: 'b', wordCount: 0, quoteCount: 1 },
      ],
    )
  })

  /** Quotes of which a deletion with the stamp 5 leaves some: by position, and by stamp. */
  const marked = {
    _id: S,
    wordCount: 0,
    quoteCount: 0,
    meta: { version: new ObjectId(V1), deletion: { stamp: 5, tenant: 'acme', request: 'd' } },
  }
  const placed = (name: string, stamp: number, newest = stamp, sourceId = S): Document =>
    quote(sourceId + name, sourceId, stamp, {
      position: `${String(stamp).padStart(16, '0')}.000000`,
      meta: { version: V1, stamp: newest },
    })
  const insertPlaced = (commands: StoreCommands) =>
    commands.insert('quotes', [
      placed('d', 9),
      placed('a', 4),
      placed('c', 5, 8),
      placed('b', 5),
      placed('e', 1, 1, T),
    ])

  describe('findQuotesOf', () => {
    const found = (_id: string, wordCount: number, newest = wordCount) => {
      const { text: _, ...others } = placed(_id, wordCount, newest)
      return others
    }
    both(
      'returns a page of a source’s quotes in the order of their ids, without texts',
      async (commands) => {
        await insertPlaced(commands)
        const page = { after: S, limit: 2, upTo: undefined }
        return [
          await commands.findQuotesOf(S, page),
          await commands.findQuotesOf(S, { ...page, after: `${S}b` }),
        ]
      },
      [
        [found('a', 4), found('b', 5)],
        [found('c', 5, 8), found('d', 9)],
      ],
    )

    both(
      'returns only quotes up to a position',
      async (commands) => {
        await insertPlaced(commands)
        const upTo = '0000000000000005.999999'
        return commands.findQuotesOf(S, { after: `${S}a`, limit: 9, upTo })
      },
      [found('b', 5), found('c', 5, 8)],
    )
  })

  describe('what a deletion leaves', () => {
    both(
      'is summed',
      async (commands) => {
        await insertPlaced(commands)
        return byId(await commands.sumQuotes([S, T], { marked: [marked] }))
      },
      [
        { _id: S, wordCount: 14, quoteCount: 2 },
        { _id: T, wordCount: 1, quoteCount: 1 },
      ],
    )

    both(
      'is summed without single deleted quotes, but with those that were posted later',
      async (commands) => {
        await insertPlaced(commands)
        const deletion = { ...marked.meta.deletion, stamp: 0, ofQuotes: { d: 9, b: 4, x: 9 } }
        const single = { ...marked, meta: { ...marked.meta, deletion } }
        return commands.sumQuotes([S], { marked: [single] })
      },
      [{ _id: S, wordCount: 14, quoteCount: 3 }],
    )

    both(
      'is all that a removal leaves of the ids that it names',
      async (commands) => {
        await insertPlaced(commands)
        const written = await commands.removeQuotes(S, [`${S}a`, `${S}c`, `${S}x`], 5)
        return { written, sums: byId(await commands.sumQuotes([S])) }
      },
      { written: ONE, sums: [{ _id: S, wordCount: 19, quoteCount: 3 }] },
    )
  })

  describe('removeSources', () => {
    both(
      'removes the sources that still have their versions',
      async (commands) => {
        const sources = ['a', 'b', 'c'].map((_id) => source(_id))
        await commands.insert('sources', sources)
        await commands.update('sources', [{ q: { _id: 'b' }, u: { $set: { 'meta.version': V2 } } }])
        const versions = [...sources.slice(1), source('absent')]
        const written = await commands.removeSources(
          versions.map(({ _id }) => ({ _id, meta: { version: new ObjectId(V1) } })),
        )
        return {
          written,
          left: (await read(commands, 'sources', 'a', 'b', 'c')).map(({ _id }) => _id),
        }
      },
      { written: ONE, left: ['a', 'b'] },
    )
  })

  describe('scanSources', () => {
    both(
      'reads the totals of every source',
      async (commands) => {
        await commands.insert('sources', [
          source('b'),
          source('a', { wordCount: 5, meta: { version: V2, stamp: 3 } }),
        ])
        const found: SourceTotals[] = []
        for await (const { own } of commands.scanSources()) found.push(...own)
        return byId(found)
      },
      [
        { _id: 'a', wordCount: 5, quoteCount: 2, meta: { version: V2, stamp: 3 } },
        { _id: 'b', wordCount: 1, quoteCount: 2, meta: { version: V1, stamp: 1 } },
      ],
    )
  })

  describe('insert', () => {
    both(
      'writes the new documents, and returns the positions of those that exist',
      async (commands) => {
        await commands.insert('sources', [source('b'), source('d')])
        const documents = ['a', 'b', 'c', 'd', 'e'].map((id) => source(id, { title: 'new' }))
        const written = await commands.insert('sources', documents)
        const stored = await read(commands, 'sources', 'a', 'b', 'c', 'd', 'e')
        return { written, titles: stored.map(({ title }) => title) }
      },
      { written: { n: 3, refused: [1, 3] }, titles: ['new', 'title', 'new', 'title', 'new'] },
    )

    both(
      'writes the first of two documents with one id',
      async (commands) => {
        const written = await commands.insert('sources', [
          source('a', { title: 'first' }),
          source('a', { title: 'second' }),
        ])
        return { written, stored: await read(commands, 'sources', 'a') }
      },
      { written: { n: 1, refused: [1] }, stored: [source('a', { title: 'first' })] },
    )
  })

  describe('update', () => {
    both(
      'replaces a document if its guard matches, and keeps no other field',
      updating(
        { url: 'https://a.example' },
        {
          q: { 'meta.version': V1 },
          u: { _id: 'a', title: 'new', meta: { version: V2, stamp: 2 } },
        },
      ),
      { written: ONE, stored: [{ _id: 'a', title: 'new', meta: { version: V2, stamp: 2 } }] },
    )

    both(
      'does not change a document if its guard does not match',
      updating({}, { q: { 'meta.version': V2 }, u: source('a', { title: 'new' }) }),
      {
        written: NONE,
        stored: [source('a')],
      },
    )

    both(
      'matches an undefined guard if the field is absent',
      updating(
        {},
        { q: { url: undefined }, u: { $set: { title: 'new' } } },
        { q: { 'meta.version': undefined }, u: { $set: { title: 'newer' } } },
      ),
      { written: ONE, stored: [source('a', { title: 'new' })] },
    )

    both(
      'writes nothing if the document is absent',
      async (commands) => {
        const written = await commands.update('sources', [
          { q: { _id: 'a', 'meta.version': V1 }, u: source('a') },
        ])
        return { written, stored: await read(commands, 'sources', 'a') }
      },
      { written: NONE, stored: [] },
    )

    both(
      'writes and counts the documents whose guards match',
      async (commands) => {
        await commands.insert('sources', [
          source('a'),
          source('b', { meta: { version: V2, stamp: 1 } }),
          source('c'),
        ])
        const statements = ['a', 'b', 'absent', 'c'].map((_id) => {
          return { q: { _id, 'meta.version': V1 }, u: { $set: { 'meta.version': V3 } } }
        })
        const written = await commands.update('sources', statements)
        return { written, versions: byId(await commands.findVersions('sources', ['a', 'b', 'c'])) }
      },
      {
        written: { n: 2, refused: [] },
        versions: [
          { _id: 'a', meta: { version: V3 } },
          { _id: 'b', meta: { version: V2 } },
          { _id: 'c', meta: { version: V3 } },
        ],
      },
    )

    both(
      'writes and counts all documents of a list whose guards match',
      async (commands) => {
        await commands.insert('sources', [
          source('a'),
          source('b', { meta: { version: V2, stamp: 1 } }),
          source('c'),
        ])
        const q = { _id: { $in: ['a', 'b', 'absent', 'c'] }, 'meta.version': V1 }
        const written = await commands.update('sources', [
          { q, u: { $set: { 'meta.stamp': 2 } }, multi: true },
        ])
        return { written, stored: await read(commands, 'sources', 'a', 'b', 'c') }
      },
      {
        written: { n: 2, refused: [] },
        stored: [
          source('a', { meta: { version: V1, stamp: 2 } }),
          source('b', { meta: { version: V2, stamp: 1 } }),
          source('c', { meta: { version: V1, stamp: 2 } }),
        ],
      },
    )

    both(
      'writes quotes of several sources',
      async (commands) => {
        await commands.insert('quotes', [quote(`${S}q`, S, 1), quote(`${T}q`, T, 1)])
        const statements = [`${S}q`, `${T}q`].map((_id) => ({
          q: { _id, 'meta.version': V1 },
          u: { $set: { wordCount: 2 } },
        }))
        const written = await commands.update('quotes', statements)
        return { written, stored: await read(commands, 'quotes', `${S}q`, `${T}q`) }
      },
      { written: { n: 2, refused: [] }, stored: [quote(`${S}q`, S, 2), quote(`${T}q`, T, 2)] },
    )

    both(
      'counts a document that it matched without a change',
      updating({}, { u: { $set: { wordCount: 1 } } }),
      {
        written: ONE,
        stored: [source('a')],
      },
    )

    both(
      'sets and unsets fields inside the document',
      updating(
        { meta: { version: V1, stamp: 1, digest: 'd', tokens: [{ request: 'one' }] } },
        {
          u: {
            $set: {
              wordCount: 9,
              'meta.version': V2,
              'meta.tokens': [{ request: 'two' }],
              'new.deep.field': 1,
            },
            $unset: { 'meta.digest': '', 'meta.absent': '', url: '' },
          },
        },
      ),
      {
        written: ONE,
        stored: [
          source('a', {
            wordCount: 9,
            meta: { version: V2, stamp: 1, tokens: [{ request: 'two' }] },
            new: { deep: { field: 1 } },
          }),
        ],
      },
    )

    both(
      'unsets a field of an absent object without a change, and keeps an object that becomes empty',
      updating({ only: { field: 1 } }, { u: { $unset: { 'absent.field': '', 'only.field': '' } } }),
      { written: ONE, stored: [source('a', { only: {} })] },
    )

    both(
      'sets null for undefined',
      updating({}, { u: { $set: { title: undefined, 'meta.digest': undefined } } }),
      {
        written: ONE,
        stored: [source('a', { title: null, meta: { version: V1, stamp: 1, digest: null } })],
      },
    )

    both(
      'writes null for undefined in a replacement',
      updating({}, { u: { _id: 'a', title: undefined, meta: { version: V2 } } }),
      {
        written: ONE,
        stored: [{ _id: 'a', title: null, meta: { version: V2 } }],
      },
    )

    both(
      'applies the second statement to the result of the first one',
      updating(
        {},
        { q: { 'meta.version': V1 }, u: { $set: { 'meta.version': V2, title: 'first' } } },
        { q: { 'meta.version': V1 }, u: { $set: { 'meta.version': V3, title: 'second' } } },
      ),
      { written: ONE, stored: [source('a', { title: 'first', meta: { version: V2, stamp: 1 } })] },
    )

    both(
      'writes a document twice if both guards match',
      updating(
        {},
        { q: { 'meta.version': V1 }, u: { $set: { 'meta.version': V2, title: 'first' } } },
        { q: { 'meta.version': V2 }, u: { $set: { 'meta.version': V3 } } },
      ),
      {
        written: { n: 2, refused: [] },
        stored: [source('a', { title: 'first', meta: { version: V3, stamp: 1 } })],
      },
    )

    both(
      'stores a watermark, raises it, and never lowers it',
      async (commands) => {
        const raise = (watermark: number) =>
          commands.update('writers', [
            { q: { _id: 'w' }, u: { $max: { watermark } }, upsert: true },
          ])
        return [
          await raise(1),
          await raise(3),
          await raise(2),
          await read(commands, 'writers', 'w'),
        ]
      },
      [ONE, ONE, ONE, [{ _id: 'w', watermark: 3 }]],
    )
  })
})

/** Ids compare by what they say; a copy of one may hold it in another form. */
function plain(value: unknown): unknown {
  if (value instanceof ObjectId) return `id ${value.toHexString()}`
  if (Array.isArray(value)) return value.map(plain)
  if (typeof value !== 'object' || value === null || value instanceof Date) return value
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, plain(inner)]))
}
