import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { setImmediate } from 'node:timers/promises'
import { constants, gzipSync, zstdCompressSync } from 'node:zlib'
import { UserError } from '@sluice/terminal'
import { makeZip } from '@sluice/test-support'
import { type TestContext, test } from 'vitest'
import { UnreadableFile } from '../formats/format.ts'
import { openInput } from './input.ts'
import { readCounted } from './read-counted.ts'

async function folderOf(
  t: TestContext,
  files: Readonly<Record<string, string | Buffer>>,
): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-input-test-'))
  t.onTestFinished(() => rm(folder, { recursive: true, force: true }))
  for (const [path, content] of Object.entries(files)) {
    await mkdir(dirname(join(folder, path)), { recursive: true })
    await writeFile(join(folder, path), content)
  }
  return folder
}

const deps = { stdin: Readable.from([]), stopping: new AbortController().signal }

/** The text of each file, by its path, a list for each set. */
async function readSets(names: readonly string[], stdin: Readable = deps.stdin) {
  using input = await openInput(names, { ...deps, stdin })
  const sets = []
  for (const { files } of input.sets) {
    const texts: [string, string][] = []
    for (const file of files) texts.push([file.path, await text(file.open())])
    sets.push(Object.fromEntries(texts))
  }
  return { sets, progress: input.progress }
}

test.for(['deflated', 'stored'] as const)(
  '%s files of an archive are whole after others gave them up',
  async (how, t) => {
    const content = randomBytes(400_000).toString('hex')
    const folder = await folderOf(t, {
      'a.zip': makeZip({ 'a.json': content, 'b.json': content }, how),
    })
    using input = await openInput([join(folder, 'a.zip')], deps)
    for (const file of input.sets[0]?.files ?? []) {
      for (let times = 0; times < 5; times++) {
        for await (const chunk of file.open()) {
          assert.ok(chunk.length > 0)
          break
        }
      }
      assert.equal(await text(file.open()), content)
    }
  },
)

test('names in an archive are those that a list would have: UTF-8, composed, and within the archive', async (t) => {
  const entries = {
    '/a.json': 'a',
    'b\\c.json': 'b',
    './gro\u0308\u00dfe/../d.json': 'd',
    'C:\\e.json': 'e',
    '/': '',
  }
  const zip = makeZip(entries)
  // Without the flag of UTF-8, which many programs do not write.
  const flagged = Buffer.from([20, 0, 0, 8])
  for (let at = zip.indexOf(flagged); at !== -1; at = zip.indexOf(flagged)) zip[at + 3] = 0
  const folder = await folderOf(t, { 'names.zip': zip, 'gro\u0308\u00dfe/f.json': 'f' })
  assert.deepEqual((await readSets([join(folder, 'names.zip')])).sets, [
    { 'a.json': 'a', 'b/c.json': 'b', 'gr\u00f6\u00dfe/d.json': 'd', 'e.json': 'e' },
  ])
  assert.deepEqual((await readSets([join(folder, 'gro\u0308\u00dfe')])).sets, [{ 'f.json': 'f' }])
})

test('what is hidden in a folder or an archive is counted, but not what systems add to each', async (t) => {
  const files = {
    'a.json': 'a',
    '.github/b.json': 'b',
    'c/.d.json': 'd',
    '.DS_Store': '',
    '._a.json': '',
    '__MACOSX/.e': '',
  }
  const folder = await folderOf(t, { ...files, 'x/a.zip': makeZip(files) })
  using archive = await openInput([join(folder, 'x/a.zip')], deps)
  using whole = await openInput([folder], deps)
  const paths = ({ notOpened }: typeof whole) =>
    notOpened.map(({ reason, place }) => [reason, place.path])
  const reason = 'hidden files and folders, which are not read'
  assert.deepEqual(paths(archive), [
    [reason, '.github/b.json'],
    [reason, 'c/.d.json'],
  ])
  assert.deepEqual(paths(whole), [
    [reason, '.github'],
    [reason, 'c/.d.json'],
  ])
})

test('an entry whose checksum differs is damaged, however well it can be inflated', async (t) => {
  const zip = makeZip({ 'a.json': 'one', 'b.json': 'two' }, 'stored')
  zip.write('0ne', zip.indexOf('one'))
  // The size of the first entry in the list.
  zip.writeUInt32LE(9, zip.indexOf('PK\x01\x02') + 24)
  const folder = await folderOf(t, { 'a.zip': zip })
  using input = await openInput([join(folder, 'a.zip')], deps)
  const [damaged, whole] = input.sets[0]?.files ?? []
  await assert.rejects(
    async () => text(damaged?.open() ?? Readable.from([])),
    (error) => {
      return (
        error instanceof UnreadableFile &&
        /a.json cannot be read: it is damaged/.test(error.message)
      )
    },
  )
  assert.equal(await text(whole?.open() ?? Readable.from([])), 'two')
})

test('an aborted import waits for no chunk of a file', async () => {
  const stopping = new AbortController()
  const raw = { path: 'pipe', open: () => new Readable({ read() {} }) }
  const open = readCounted(raw, { stopping: stopping.signal, progress: { total: 0, done: 0 } })
  const reading = text(open())
  stopping.abort(new Error('stop'))
  await assert.rejects(reading, /stop/)
})

test('a folder and an archive are a set each, files that are named one by one are one', async (t) => {
  const folder = await folderOf(t, {
    'export/b/1.json': 'b1',
    'export/a.json': 'a',
    'export.zip': makeZip({ 'a.json': 'a', 'c/2.json': 'c2' }),
    'x.json': 'x',
    'y.json': 'y',
  })
  const names = ['x.json', 'export', 'export.zip', 'y.json'].map((name) => join(folder, name))
  const { sets, progress } = await readSets(names)
  assert.deepEqual(progress, { total: 8, done: 8 })
  assert.deepEqual(sets, [
    { 'a.json': 'a', 'b/1.json': 'b1' },
    { 'a.json': 'a', 'c/2.json': 'c2' },
    { 'x.json': 'x', 'y.json': 'y' },
  ])
})

/** A frame of Zstandard that has no data, as programs that compress in parallel write it. */
const SKIPPED_FRAME = Buffer.from([0x50, 0x2a, 0x4d, 0x18, 1, 0, 0, 0, 7])

test('compressed files are inflated, and lose their extension', async (t) => {
  const window = { params: { [constants.ZSTD_c_windowLog]: 27 } }
  const folder = await folderOf(t, {
    'a.json.gz': Buffer.concat([gzipSync('one '), gzipSync('two')]),
    'b.ndjson.zst': Buffer.concat([
      SKIPPED_FRAME,
      zstdCompressSync('three ', window),
      zstdCompressSync('four'),
    ]),
  })
  const { sets, progress } = await readSets([folder])
  assert.deepEqual(sets, [{ 'a.json': 'one two', 'b.ndjson': 'three four' }])
  assert.equal(progress.done, progress.total)
})

test('a file of a named encoding is read as UTF-8, inflated or not, but for rejected records', async (t) => {
  const greeting = Buffer.from([0x93, 0x47, 0x72, 0xfc, 0xdf, 0x65, 0x94])
  const folder = await folderOf(t, {
    'a.csv': greeting,
    'b.csv.gz': gzipSync(greeting),
    'a.csv.rejected.ndjson': '“Grüße”',
  })
  const names = ['a.csv', 'b.csv.gz', 'a.csv.rejected.ndjson'].map((name) => join(folder, name))
  using input = await openInput(names, { ...deps, encoding: 'windows-1252' })
  for (const file of input.sets.flatMap(({ files }) => files))
    assert.equal(await text(file.open()), '“Grüße”')
  using broken = await openInput(names.slice(0, 1), { ...deps, encoding: 'shift_jis' })
  const [file] = broken.sets.flatMap(({ files }) => files)
  await assert.rejects(
    async () => text(file?.open() ?? Readable.from([])),
    /a.csv cannot be read: .*shift_jis/,
  )
})

test('standard input without a byte is called empty, and is closed however the import ends', async () => {
  const stdin = Readable.from([])
  await assert.rejects(readSets(['-'], stdin), /Standard input is empty/)
  const open = new Readable({ read() {} })
  open.push('some text')
  const input = await openInput(['-'], { ...deps, stdin: open })
  input[Symbol.dispose]()
  assert.ok(open.destroyed)
})

test('files of systems, editors and earlier imports are left out of folders and archives', async (t) => {
  const junk = {
    '.DS_Store': '',
    '__MACOSX/a.json': '',
    'a.json.rejected.ndjson': '',
    'a.json.rejected-2.ndjson': '',
    'x.sluice-checkpoint': '',
  }
  const folder = await folderOf(t, {
    ...junk,
    'a.json': 'a',
    'a.zip': makeZip({ ...junk, 'a.json': 'a' }),
  })
  assert.deepEqual((await readSets([join(folder, 'a.zip')])).sets, [{ 'a.json': 'a' }])
  await rm(join(folder, 'a.zip'))
  assert.deepEqual((await readSets([folder])).sets, [{ 'a.json': 'a' }])
})

test('standard input is read as it is or inflated, and its beginning can be read before', async () => {
  for (const bytes of [
    Buffer.from('some text'),
    gzipSync('some text'),
    zstdCompressSync('some text'),
  ]) {
    const stdin = Readable.from([bytes.subarray(0, 2), bytes.subarray(2)])
    using input = await openInput(['-'], { ...deps, stdin })
    const file = input.sets[0]?.files[0]
    assert.equal(input.fingerprint, undefined)
    for await (const chunk of file?.open() ?? []) {
      assert.equal(String(chunk).slice(0, 4), 'some')
      break
    }
    assert.equal(await text(file?.open() ?? Readable.from([])), 'some text')
  }
})

test('standard input loses no chunk that a given-up reader awaits, and refuses to be read twice', async () => {
  const chunks = Array.from({ length: 40 }, (_, index) => Buffer.from(`${index},`.padEnd(50_000)))
  const stdin = Readable.from(slowly(chunks))
  using input = await openInput(['-'], { ...deps, stdin })
  const file = input.sets[0]?.files[0]
  for await (const _ of file?.open() ?? []) break
  assert.equal(await text(file?.open() ?? Readable.from([])), String(Buffer.concat(chunks)))
  await assert.rejects(
    async () => text(file?.open() ?? Readable.from([])),
    /stdin can be read only once/,
  )
})

async function* slowly(chunks: readonly Buffer[]) {
  for (const chunk of chunks) {
    await setImmediate()
    yield chunk
  }
}

test('what cannot be read is named, and why', async (t) => {
  const folder = await folderOf(t, {
    'broken.zip': 'no zip',
    'broken.json.gz': gzipSync('x'.repeat(1_000)).subarray(0, 15),
  })
  await mkdir(join(folder, 'empty'))
  for (const [name, message] of [
    ['gone.json', /gone.json cannot be read: it does not exist/],
    ['broken.zip', /broken.zip cannot be read: /],
    ['broken.json.gz', /broken.json.gz cannot be read: unexpected end of file/],
    ['empty', /empty holds no file/],
  ] as const) {
    await assert.rejects(
      readSets([join(folder, name)]),
      (error) => error instanceof UserError && message.test(error.message),
    )
  }
})

test('of a folder only regular files are read, and what else is in it is counted', {
  timeout: 5_000,
}, async (t) => {
  const folder = await folderOf(t, { 'a.json': 'a', 'b/c.json': 'c' })
  execFileSync('mkfifo', [join(folder, 'b', 'pipe.json'), join(folder, 'named')])
  await symlink('/dev/zero', join(folder, 'zero.json'))
  await symlink('/', join(folder, 'root'))
  await symlink('gone', join(folder, 'broken.json'))
  await symlink('loop', join(folder, 'loop'))
  await symlink(join(folder, 'a.json'), join(folder, 'z.json'))
  assert.deepEqual((await readSets([folder])).sets, [
    { 'a.json': 'a', 'b/c.json': 'c', 'z.json': 'a' },
  ])
  using input = await openInput([folder], deps)
  const reason = 'pipes, devices, sockets, broken links and links to folders, which are not read'
  assert.deepEqual(
    input.notOpened,
    ['b/pipe.json', 'broken.json', 'loop', 'named', 'root', 'zero.json'].map((path) => ({
      kind: 'skipped',
      reason,
      place: { path },
    })),
  )
  await assert.rejects(
    readSets([join(folder, 'named')]),
    /named is no regular file. Pipe it to standard input/,
  )
})

test('the fingerprint changes with the files of the input', async (t) => {
  const folder = await folderOf(t, { 'a.json': 'a' })
  const fingerprint = async () => {
    using input = await openInput([folder], deps)
    return JSON.stringify(input.fingerprint)
  }
  const before = await fingerprint()
  assert.equal(await fingerprint(), before)
  await writeFile(join(folder, 'a.json'), 'ab')
  assert.notEqual(await fingerprint(), before)
})

test('reading ends when the import stops', async (t) => {
  const folder = await folderOf(t, { 'a.json': 'x'.repeat(1_000_000) })
  const stop = new AbortController()
  using input = await openInput([folder], { ...deps, stopping: stop.signal })
  const stream = input.sets[0]?.files[0]?.open()
  stop.abort(new Error('stop'))
  await assert.rejects(text(stream ?? Readable.from([])), /stop/)
  const [file] = input.sets[0]?.files ?? []
  await assert.rejects(async () => file?.beginning?.(9), /stop/)
})

test('folders of mail are read although their names begin with a dot, in folders and in archives', async (t) => {
  const paths = [
    'cur/1',
    '.Sent/cur/2',
    '.Archive.2024/new/3',
    '.inbox.directory/sub/cur/4',
    'Sub/.Deep/cur/5',
  ]
  const hidden = ['.git/config', '.Sent/dovecot-uidlist', '.Sent/cur/.6', '.directory']
  const contents = Object.fromEntries([...paths, ...hidden].map((path) => [path, path]))
  const folder = await folderOf(t, contents)
  await writeFile(join(folder, 'a.zip'), makeZip(contents, 'stored'))
  const expected = Object.fromEntries(paths.map((path) => [path, path]))
  const { sets } = await readSets([join(folder, 'a.zip')])
  assert.deepEqual(sets, [expected])
  await rm(join(folder, 'a.zip'))
  assert.deepEqual((await readSets([folder])).sets, [expected])
})
