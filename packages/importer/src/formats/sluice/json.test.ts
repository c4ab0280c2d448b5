import assert from 'node:assert/strict'
import { describe, it } from 'vitest'
import { inputFile, readAll, recognises } from '../read-all.test-support.ts'
import { jsonFormat } from './sluice-formats.ts'

const thread = {
  service: 'slack',
  externalId: 'C1',
  title: 'A "thread" [',
  quotes: [{ externalId: '1', text: '{\\' }],
}
const file = (content: unknown) => inputFile('threads.json', JSON.stringify(content, null, 2))

describe('a JSON array of threads', () => {
  it('gives its threads in their order, with line and pointer', async () => {
    const { pieces } = await readAll(jsonFormat, [file([thread, { ...thread, externalId: 'C2' }])])
    assert.deepEqual(
      pieces.map(({ externalId, fields, quotes, place }) => ({
        externalId,
        fields,
        quotes,
        place,
      })),
      ['C1', 'C2'].map((externalId, index) => ({
        externalId,
        fields: { title: thread.title },
        quotes: thread.quotes,
        place: { path: 'threads.json', line: index === 0 ? 2 : 13, pointer: `/${index}` },
      })),
    )
  })

  it('may be a single thread', async () => {
    const { pieces } = await readAll(jsonFormat, [file(thread)])
    assert.deepEqual(pieces[0]?.place, { path: 'threads.json', line: 1 })
  })

  it('has elements that are rejected, and others that are not', async () => {
    const broken = `[${JSON.stringify(thread)}, {"service": slack}, 7, ${JSON.stringify({ ...thread, quotes: [{ text: 7 }] })},`
    const { pieces, rejected } = await readAll(jsonFormat, [
      inputFile('a.json', `${broken}${JSON.stringify(thread)}]`),
    ])
    assert.equal(pieces.length, 2)
    assert.deepEqual(
      rejected.map(({ place, record }) => [place.pointer, record]),
      [
        ['/1', '{"service": slack}'],
        ['/2', 7],
        ['/3/quotes/0/text', { ...thread, quotes: [{ text: 7 }] }],
      ],
    )
  })

  it('is rejected where it ends too soon', async () => {
    const { pieces, rejected } = await readAll(jsonFormat, [
      inputFile('a.json', JSON.stringify([thread, thread]).slice(0, -9)),
    ])
    assert.deepEqual([pieces.length, rejected.length], [1, 1])
    assert.match(rejected[0]?.reason ?? '', /not JSON/)
  })

  it('is read in UTF-16 too', async () => {
    const text = `\ufeff${JSON.stringify([{ ...thread, title: 'Größe 😀' }])}`
    const utf16 = Buffer.from(text, 'utf16le')
    for (const bytes of [Buffer.from(text), utf16, Buffer.from(utf16).swap16()]) {
      const { pieces } = await readAll(jsonFormat, [inputFile('a.json', bytes)])
      assert.equal(pieces[0]?.fields.title, 'Größe 😀')
    }
  })

  it('is recognised by the members of its first element', async () => {
    assert.ok(await recognises(jsonFormat, file([thread])))
    assert.ok(await recognises(jsonFormat, file(thread)))
    assert.ok(!(await recognises(jsonFormat, file([{ number: 1, body: '"quotes": ' }]))))
  })
})
