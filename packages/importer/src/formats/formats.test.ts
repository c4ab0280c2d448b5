// What holds for each format of the table.
import assert from 'node:assert/strict'
import { readdir } from 'node:fs/promises'
import { basename } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { describe, it } from 'vitest'
import { detectFormats } from '../input/detect-format.ts'
import { RELATIVES, rowOf } from '../input/known-relatives.ts'
import { EXAMPLES, examples, type Files, filesOf, testable } from './examples.test-support.ts'
import { type InputFile, UnreadableFile } from './format.ts'
import { formats } from './formats.ts'
import { inputFile, readAll } from './read-all.test-support.ts'

it('each format has the name under which the table has it, and a title and a source of its own words', () => {
  assert.deepEqual(formats.map(({ name }) => name).toSorted(), Object.keys(EXAMPLES).toSorted())
  assert.deepEqual(
    formats.filter(({ title, sourceIs }) => title === '' || sourceIs === ''),
    [],
  )
})

it('each format has a file of tests, named after it', async () => {
  const files = await readdir(import.meta.dirname, { recursive: true })
  const tested = files.map((file) => /([^/]+?)(?:-format)?\.test\.ts$/.exec(file)?.[1])
  assert.deepEqual(
    formats.filter(({ name }) => !tested.includes(name)),
    [],
  )
})

describe('the format', () => {
  for (const format of testable)
    it(`${format.name} recognises its example, and no other format does, and it has a thread`, async () => {
      const { read, unread, notes } = await detectFormats(
        [{ name: 'x', files: filesOf(format) }],
        formats,
      )
      const names = read.map((group) => group.format.name)
      assert.deepEqual([names, unread, notes], [[format.name], [], []])
      const { pieces, rejected } = await readAll(format, filesOf(format), { timezone: 'UTC' })
      assert.deepEqual([pieces.length > 0, rejected], [true, []])
    })
})

const UNKNOWN = { hologram: 1 }

/**
 * Yields copies of a value of JSON, or of lines of JSON, each with an unknown record in another list
 * of records.
 */
function* withUnknown(value: unknown): Generator<unknown> {
  if (typeof value === 'string' && value.startsWith('{'))
    yield `${value}\n${JSON.stringify(UNKNOWN)}`
  if (Array.isArray(value)) {
    if (value.some((one) => one === Object(one))) yield [...value, UNKNOWN]
    for (const [at, one] of value.entries())
      for (const changed of withUnknown(one)) yield value.with(at, changed)
  } else if (value?.constructor === Object)
    for (const [name, one] of Object.entries(value))
      for (const changed of withUnknown(one)) yield { ...value, [name]: changed }
}

describe('an unknown record among others', () => {
  for (const format of testable)
    it(`of ${format.name} is not dropped without a count`, async () => {
      const files = Object.entries(examples.get(format.name) ?? {})
      const foundIn = async (changed: Files) => {
        const all = Object.entries(changed).map(([path, value]) => inputFile(path, value))
        const { quotes: _, ...found } = await readAll(format, all, { timezone: 'UTC' })
        return JSON.stringify(found)
      }
      const known = await foundIn(Object.fromEntries(files))
      for (const [path, value] of files)
        for (const changed of withUnknown(value))
          assert.notEqual(
            await foundIn({ ...Object.fromEntries(files), [path]: changed }),
            known,
            JSON.stringify(changed),
          )
    })
})

it('no example is taken for a file that people have in place of an export', async () => {
  for (const format of testable)
    for (const file of filesOf(format))
      assert.equal(rowOf(RELATIVES, file.path, await buffer(file.open())), undefined, file.path)
})

/** A file whose last byte can be read, and whose checksum then differs. */
function damaged(file: InputFile): InputFile {
  async function* open() {
    yield* file.open()
    throw new UnreadableFile(file.path, 'it is damaged.', undefined)
  }
  return { ...file, open, beginning: async () => await buffer(file.open()) }
}

describe('a damaged file', () => {
  for (const format of testable)
    it(`of ${format.name} is rejected, and ends no import`, async () => {
      const { rejected } = await readAll(format, filesOf(format).map(damaged), { timezone: 'UTC' })
      const ofFiles = rejected.filter(
        ({ reason }) => reason === "The file can't be read: it is damaged.",
      )
      assert.deepEqual(
        ofFiles.map(({ place }) => place.path).toSorted(),
        filesOf(format)
          .map(({ path }) => path)
          .toSorted(),
      )
    })
})

it('the exports of all formats in one folder are told apart', async () => {
  const files = testable.flatMap((format) =>
    filesOf(format).map((file) => ({ ...file, path: `${format.name}/${file.path}` })),
  )
  const { read, unread } = await detectFormats([{ name: 'x', files }], formats)
  const found = read.map(({ format, files: some }) => [
    format.name,
    some.every(({ path }) => path.startsWith(`${format.name}/`)),
  ])
  assert.deepEqual(found.toSorted(), testable.map(({ name }) => [name, true]).toSorted())
  assert.deepEqual(unread, [])
})

/** Files of kinds that may have messages, and that no format recognises. */
const STRAYS = ['txt', 'csv', 'json', 'html', 'xlsx', 'mbox', 'eml', 'db', 'dat'].map(
  (kind) => `notes.${kind}`,
)

/**
 * Finds who reads files in the folder of an export, or files that are named one by one, by their
 * paths.
 */
async function readersOf(files: readonly InputFile[], isList: boolean) {
  const named = files.map((file) =>
    isList ? { ...file, path: basename(file.path), isNamed: true } : file,
  )
  const { read, unread } = await detectFormats(
    [{ name: 'x', files: named, ...(isList && { isList }) }],
    formats,
  )
  const readers = read.flatMap((group) =>
    group.files.map(({ path }) => [path, group.format.name] as const),
  )
  return new Map([
    ...readers,
    ...unread.map(({ name }) => [name.replace(/^x\//, ''), 'unread'] as const),
  ])
}

it('a file that is named beside others with --format is read, rejected, or named as unread', async () => {
  const silent: string[] = []
  for (const format of testable) {
    const notes = inputFile('notes.txt', 'Seventeen boats\nTwo sails\n')
    const files = [...filesOf(format), notes].map((file) => ({ ...file, isNamed: true }))
    const { read, unread } = await detectFormats(
      [{ name: 'x', files, isList: true }],
      formats,
      format.name,
    )
    const reading = readAll(format, read[0]?.files ?? [], { timezone: 'UTC' })
    const paths = await reading.then(
      ({ rejected }) => rejected.map(({ place }) => place.path),
      () => [notes.path],
    )
    if (![...paths, ...unread.map(({ name }) => name)].includes(notes.path))
      silent.push(format.name)
  }
  assert.deepEqual(silent, [])
})

/** Paths such as those of what exports have beside their messages. */
const PATHS =
  'Archive/x chats/x friends/x general/x messages/x posts/x more/schema teams users/user users_202405 v.live_chat x/index x/tickets'.split(
    ' ',
  )
const teams = { value: [{ messageType: 'message', body: { content: '17 boats' } }] }

it('a file of a program that is not read is named as unread wherever it lies in an export', async () => {
  const silent: string[] = []
  for (const format of testable.filter(({ owns }) => owns !== undefined))
    for (const path of PATHS) {
      const stray = inputFile(`${path}.json`, teams)
      const readers = await readersOf([...filesOf(format), stray], false)
      if (readers.get(stray.path) !== 'unread') silent.push(`${stray.path} in ${format.name}`)
    }
  assert.deepEqual(silent, [])
})

describe('beside an export', () => {
  for (const format of testable)
    it(`of ${format.name}, files of other formats are not its own, and files of no format are named`, async () => {
      const own = filesOf(format)
      const folder = own[0]?.path.replace(/[^/]*$/, '') ?? ''
      const within = (file: InputFile) => ({ ...file, path: `${folder}${file.path}` })
      const strays = STRAYS.map((name) => within(inputFile(name, '\x01 17 boats\n')))
      for (const isList of [false, true]) {
        const pathIn = ({ path }: InputFile) => (isList ? basename(path) : path)
        const ofStrays = await readersOf([...own, ...strays], isList)
        for (const stray of strays) assert.equal(ofStrays.get(pathIn(stray)), 'unread', stray.path)
        for (const other of testable.filter((each) => each !== format)) {
          const taken = new Set(own.map(pathIn))
          const beside = filesOf(other)
            .map(within)
            .filter((file) => !taken.has(pathIn(file)))
          const readers = await readersOf([...own, ...beside], isList)
          for (const file of beside) {
            const reader = readers.get(pathIn(file))
            assert.ok(
              reader !== undefined && reader !== format.name,
              `${file.path} of ${other.name}: ${reader}`,
            )
          }
        }
      }
    })
})
