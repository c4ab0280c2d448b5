import assert from 'node:assert/strict'
import { statSync } from 'node:fs'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'vitest'
import { createRejectedFile } from './rejected-file.ts'

async function fileOf(t: TestContext) {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-rejected-test-'))
  t.onTestFinished(() => rm(folder, { recursive: true, force: true }))
  return createRejectedFile(join(folder, 'a.rejected.ndjson'), 0)
}

test('records are appended in their order, and the size of the file is returned', async (t) => {
  const file = await fileOf(t)
  for (const record of ['ä', 'b', 'c']) {
    file.add({ reason: 'r', place: { path: 'a', line: 1 }, record })
    if (record !== 'ä') assert.equal(await file.flush(), (await readFile(file.path)).length)
  }
  const lines = (await readFile(file.path, 'utf8')).trim().split('\n')
  assert.deepEqual(
    lines.map((line) => JSON.parse(line).record),
    ['ä', 'b', 'c'],
  )
})

test('a context of more than 64 KiB is left out, because each record of its file repeats it, and the record stays', async (t) => {
  const file = await fileOf(t)
  const record = { reason: 'r', place: { path: 'a', line: 7 }, record: 'b' }
  file.add({ ...record, context: { name: 'x'.repeat(65_000) } })
  file.add({ ...record, context: { name: 'x'.repeat(66_000) } })
  await file.flush()
  const lines = (await readFile(file.path, 'utf8')).trim().split('\n')
  const keys = lines.map((line) => Object.keys(JSON.parse(line)))
  assert.deepEqual(keys, [
    ['reason', 'path', 'line', 'context', 'record'],
    ['reason', 'path', 'line', 'contextLeftOut', 'record'],
  ])
})

test('records are written one by one: they may share a long header, and their lines cannot', async (t) => {
  const file = await fileOf(t)
  const header = 'x'.repeat(65_000)
  let sizeBeforeLast = 0
  const toJSON = () => {
    sizeBeforeLast = statSync(file.path).size
    return 'last'
  }
  for (let line = 1; line < 100; line++)
    file.add({ reason: 'r', place: { path: 'a', line }, record: `${header}${line}` })
  file.add({ reason: 'r', place: { path: 'a', line: 100 }, record: { toJSON } })
  assert.ok((await file.flush()) > 99 * header.length)
  assert.ok(sizeBeforeLast > 90 * header.length, `${sizeBeforeLast} bytes`)
})
