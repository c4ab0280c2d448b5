// Tests of reading chosen values of a JSON text, whatever the chunks that it comes in.
import { Readable } from 'node:stream'
import { expect, test } from 'vitest'
import { MAX_VALUE_BYTES } from './json-value.ts'
import { type JsonEntry, type JsonSelection, readJson } from './read-json.ts'

const selection: JsonSelection = {
  enter: ['', '/chat', '/chat/messages'],
  take: ['/chat/name', '/chat/messages/*', '/a~1b'],
}
const text = JSON.stringify({
  skipped: { messages: [{ id: 0 }], text: 'a "quoted" ] } \\' },
  'a/b': [1, { c: null }],
  chat: { name: 'Zoë 😀', messages: [{ id: 1, text: '"]}\\"' }, [], 'x', -1.5e3, true], id: 7 },
})

test('takes the chosen values, each with its place and its pointer', async () => {
  expect(await read([text], selection)).toEqual([
    { at: '/a~1b', pointer: '/a~1b', value: [1, { c: null }] },
    { at: '/chat/name', pointer: '/chat/name', value: 'Zoë 😀' },
    { at: '/chat/messages/*', pointer: '/chat/messages/0', value: { id: 1, text: '"]}\\"' } },
    { at: '/chat/messages/*', pointer: '/chat/messages/1', value: [] },
    { at: '/chat/messages/*', pointer: '/chat/messages/2', value: 'x' },
    { at: '/chat/messages/*', pointer: '/chat/messages/3', value: -1500 },
    { at: '/chat/messages/*', pointer: '/chat/messages/4', value: true },
  ])
})

test('reads the same from chunks of one byte, with white space and a byte order mark', async () => {
  const spaced = Buffer.from(`\ufeff ${JSON.stringify(JSON.parse(text), null, '\t\r\n')}\n`)
  const chunks = [spaced.subarray(0, 3), ...Array.from(spaced.subarray(3), (byte) => Buffer.from([byte]))]
  expect(await read(chunks, selection)).toEqual(await read([text], selection))
})

test('takes a text that is one value', async () => {
  expect(await read(['[1]'], { enter: [], take: [''] })).toEqual([{ at: '', pointer: '', value: [1] }])
  expect(await read(['12'], { enter: [], take: [''] })).toEqual([{ at: '', pointer: '', value: 12 }])
  expect(await read(['[]'], { enter: [''], take: ['/*'] })).toEqual([])
})

test('reads on behind a value that is no valid JSON', async () => {
  const entries = await read(['[1, {"a": nope}, 3]'], { enter: [''], take: ['/*'] })
  expect(entries.map((entry) => entry.fault ?? entry.value)).toEqual([1, 'not valid JSON', 3])
  expect(entries[1]).toMatchObject({ pointer: '/1', text: '{"a": nope}' })
})

test('reads on behind a value that is not UTF-8', async () => {
  const entries = await read([Buffer.from('["caf\xe9", "café"]', 'latin1').subarray(0, 8), ' "café"]'], {
    enter: [''],
    take: ['/*'],
  })
  expect(entries.map((entry) => entry.fault ?? entry.value)).toEqual(['not valid UTF-8', 'café'])
})

test.each([
  ['[1, 2', 'the file ends before its JSON does'],
  ['', 'the file ends before its JSON does'],
  ['[1 2]', 'not valid JSON: expected , or the end, found "2"'],
  ['[1] 2', 'not valid JSON: expected nothing, found "2"'],
  ['{"a": 1, }', 'not valid JSON: expected a key, found "}"'],
])('names the fault of %j and keeps what was read before it', async (broken, fault) => {
  const entries = await read([broken], { enter: [''], take: ['/*', '/a'] })
  expect(entries.at(-1)).toMatchObject({ fault })
  expect(entries.slice(0, -1).every((entry) => entry.fault === undefined)).toBe(true)
})

test('refuses a value over the bound and reads on', async () => {
  const long = 'x'.repeat(MAX_VALUE_BYTES)
  const entries = await readAs(['[1,"', long, '",3]'], { enter: [''], take: ['/*'] }, 0)
  expect(entries.map((entry) => entry.fault ?? entry.value)).toEqual([1, `more than ${MAX_VALUE_BYTES} bytes`, 3])
})

/** Reads a text both ways, which must not differ. */
async function read(chunks: readonly (string | Buffer)[], of: JsonSelection): Promise<JsonEntry[]> {
  const [whole, streamed] = [await readAs(chunks, of, Number.POSITIVE_INFINITY), await readAs(chunks, of, 0)]
  expect(streamed).toEqual(whole)
  return streamed
}

async function readAs(chunks: readonly (string | Buffer)[], of: JsonSelection, wholeBytes: number) {
  const entries: JsonEntry[] = []
  const stream = Readable.from(chunks.map((chunk) => Buffer.from(chunk)))
  for await (const list of readJson(stream, of, wholeBytes)) entries.push(...list)
  return entries
}
