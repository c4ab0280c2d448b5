import assert from 'node:assert/strict'
import { Readable } from 'node:stream'
import { UserError } from '@sluice/terminal'
import { test } from 'vitest'
import type { Format, InputFile } from '../formats/format.ts'
import { detectFormats } from './detect-format.ts'

let opened = 0

function fileOf(path: string, text: string | Buffer = path): InputFile {
  const open = () => {
    opened += 1
    return Readable.from([Buffer.from(text)])
  }
  return { path, open }
}

/** A format of files that begin with its name. */
function formatOf(name: string): Format {
  return {
    name,
    description: name,
    recognises: async (files, beginning) => {
      for (const file of files) if (!(await beginning(file)).toString().startsWith(name)) return false
      return true
    },
    async *read() {},
  }
}

const formats = ['alpha', 'beta', 'alp'].map(formatOf)
const shown = (found: Awaited<ReturnType<typeof detectFormats>>) =>
  found.map(({ format, files }) => [format.name, files.map(({ path }) => path)])

test('the first format that recognises a set reads it as a whole, and each beginning is read once', async () => {
  opened = 0
  const sets = [
    { name: 'folder', files: [fileOf('beta 1'), fileOf('beta 2')] },
    { name: 'a', files: [fileOf('alpha')] },
  ]
  assert.deepEqual(shown(await detectFormats(sets, formats, undefined)), [
    ['beta', ['beta 1', 'beta 2']],
    ['alpha', ['alpha']],
  ])
  assert.equal(opened, 3)
})

test('files that no format recognises together are told apart, and neighbours of one format stay together', async () => {
  const files = ['alpha 1', 'alpha 2', 'beta 1', 'alpha 3'].map((path) => fileOf(path))
  assert.deepEqual(shown(await detectFormats([{ name: 'x', files }], formats, undefined)), [
    ['alpha', ['alpha 1', 'alpha 2']],
    ['beta', ['beta 1']],
    ['alpha', ['alpha 3']],
  ])
})

test('a named format is not asked', async () => {
  const sets = [{ name: 'x', files: [fileOf('gamma')] }]
  assert.deepEqual(shown(await detectFormats(sets, formats, 'beta')), [['beta', ['gamma']]])
})

test('a file that no format reads has advice, and an empty one is called empty', async () => {
  const tar = Buffer.alloc(512)
  tar.write('ustar', 257)
  for (const [file, advice] of [
    [fileOf('export/inner.zip', 'PK\x03\x04'), /It is a zip archive: save it as a file of its own/],
    [fileOf('stdin', 'PK\x03\x04'), /of stdin is not recognised. It is a zip archive/],
    [fileOf('a.xlsx', 'PK\x03\x04'), /It is a spreadsheet: save it as CSV/],
    [fileOf('a.tgz', Buffer.from([0x1f, 0x8b, 8])), /It is a tar archive: unpack it/],
    [fileOf('a.tar', tar), /It is a tar archive/],
    [fileOf('a', Buffer.from([0x1f, 0x8b, 8])), /It is compressed: give it a name that ends in .gz/],
    [fileOf('a.msg', '\xD0\xCF'), /It is a mail of Outlook: .* msgconvert/],
    [fileOf('a.PST', '!BDN'), /It is a mailbox of Outlook: .* readpst/],
    [fileOf('a.olm', 'PK\x03\x04'), /It is a mailbox of Outlook for Mac/],
    [fileOf('a.json', ''), /It is empty/],
    [{ ...fileOf('a.json', ''), isEmpty: true }, /x is empty/],
  ] as const)
    await assert.rejects(detectFormats([{ name: 'x', files: [file] }], formats, undefined), advice)
})

test('what is not recognised is named, with the formats that were tried and how to name one', async () => {
  for (const [files, named, message] of [
    [[fileOf('gamma')], undefined, /The format of gamma is not recognised. .* alpha, beta, alp. .*--format/],
    [[fileOf('alpha'), fileOf('gamma')], undefined, /The format of x \(such as gamma in it\)/],
    [[fileOf('alpha')], 'delta', /--format must be one of alpha, beta, alp/],
  ] as const) {
    const detecting = detectFormats([{ name: 'x', files: [...files] }], formats, named)
    await assert.rejects(detecting, (error) => error instanceof UserError && message.test(error.message))
  }
})
