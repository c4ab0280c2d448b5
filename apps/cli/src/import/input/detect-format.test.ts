import assert from 'node:assert/strict'
import { Readable } from 'node:stream'
import type { Format, InputFile } from '@sluice/formats'
import { test } from 'vitest'
import { detectFormats } from './detect-format.ts'
import { InputError } from './read-counted.ts'

let opened = 0

function fileOf(path: string, text = path): InputFile {
  const open = async () => {
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
    isScattered: false,
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

test('what is not recognised is named, with the formats that were tried and how to name one', async () => {
  for (const [files, named, message] of [
    [[fileOf('gamma')], undefined, /The format of gamma is not recognised. .* alpha, beta, alp. .*--format/],
    [[fileOf('alpha'), fileOf('gamma')], undefined, /The format of x \(such as gamma in it\)/],
    [[fileOf('alpha')], 'delta', /--format must be one of alpha, beta, alp/],
  ] as const) {
    const detecting = detectFormats([{ name: 'x', files: [...files] }], formats, named)
    await assert.rejects(detecting, (error) => error instanceof InputError && message.test(error.message))
  }
})
