import assert from 'node:assert/strict'
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'vitest'
import { createCheckpoint, saveProgress } from './checkpoint.ts'
import { createLedger, emptyTally, type RejectedRecord } from './ledger.ts'
import { createRejectedFile, rejectedPathOf } from './rejected-file.ts'

async function someFolder(t: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-checkpoint-test-'))
  t.onTestFinished(() => rm(folder, { recursive: true, force: true }))
  return folder
}

const record = (line: number): RejectedRecord => ({
  reason: 'no title',
  place: { path: 'a', line },
  record: { line },
})

test('a checkpoint is found again by the same import only', async (t) => {
  const path = join(await someFolder(t), 'a.sluice-checkpoint')
  const progress = { tally: { ...emptyTally(), events: 7 }, rejectedBytes: 12 }
  const checkpoint = createCheckpoint(path, ['input', 'options'])
  assert.deepEqual(await checkpoint.load(), { isOther: false })
  await checkpoint.save(progress)
  assert.deepEqual(await checkpoint.load(), { progress, isOther: false })
  assert.deepEqual(await createCheckpoint(path, ['input', 'others']).load(), { isOther: true })
  await writeFile(path, '{"fingerprint":')
  assert.deepEqual(await checkpoint.load(), { isOther: true })
  await checkpoint.remove()
  assert.deepEqual(await checkpoint.load(), { isOther: false })
})

test('events count in the order of the input, whenever they are settled', () => {
  const rejected: unknown[] = []
  const ledger = createLedger(emptyTally(), ({ place }) => void rejected.push(place.line))
  const [first, second, third] = [ledger.open(), ledger.open(), ledger.open()]
  third.rejected.push(record(3))
  ledger.close(third)
  second.outcomes.push({ outcome: 'created', quotes: { created: 2, updated: 0, unchanged: 0 } })
  ledger.close(second)
  assert.deepEqual([ledger.tally.events, rejected], [0, []])
  first.rejected.push(record(1))
  ledger.close(first)
  assert.deepEqual([ledger.tally.events, rejected], [3, [1, 3]])
  assert.deepEqual(ledger.tally.threads, { created: 1, updated: 0, unchanged: 0, rejected: 2 })
  assert.equal(ledger.tally.quotes.created, 2)
})

test('rejected records are counted by reason, without what belongs to one record', () => {
  const ledger = createLedger(emptyTally(), () => {})
  for (const reason of [
    '/quotes/7/text: text is required.',
    '/quotes/12/text: text is required.',
    'The record is not JSON: Unexpected token a.',
    'The record is not JSON: Unexpected end.',
    'It failed. Its job is 7.',
  ]) {
    const entry = ledger.open()
    entry.rejected.push({ ...record(1), reason })
    ledger.close(entry)
  }
  assert.deepEqual(ledger.tally.reasons, {
    'text is required.': 2,
    'The record is not JSON': 2,
    'It failed.': 1,
  })
})

test('a thread of several parts counts once, by its greatest effect', () => {
  const ledger = createLedger(emptyTally(), () => {})
  const entry = ledger.open()
  entry.open += 2
  for (const outcome of ['unchanged', 'created'] as const) {
    entry.outcomes.push({ outcome, quotes: { created: 1, updated: 0, unchanged: 0 } })
    ledger.close(entry)
  }
  assert.equal(ledger.tally.events, 0)
  ledger.close(entry)
  assert.deepEqual(ledger.tally.threads, { created: 1, updated: 0, unchanged: 0, rejected: 0 })
})

test('a run that goes on finds exactly the rejected records before its checkpoint', async (t) => {
  const folder = await someFolder(t)
  const path = join(folder, 'a.rejected.ndjson')
  const saved = createCheckpoint(join(folder, 'a.sluice-checkpoint'), 'x')
  let isKilled = false
  const checkpoint: typeof saved = {
    ...saved,
    save: async (progress) => void (isKilled || (await saved.save(progress))),
  }
  const run = async (tally = emptyTally(), bytes = 0) => {
    const rejected = createRejectedFile(path, bytes)
    const ledger = createLedger(tally, rejected.add)
    const saver = saveProgress({
      ledger,
      rejected,
      checkpoint,
      fail: (error) => assert.fail(String(error)),
    })
    const reject = (line: number) => {
      const entry = ledger.open()
      entry.rejected.push(record(line))
      ledger.close(entry)
    }
    return { rejected, saver, reject }
  }
  const killed = await run()
  killed.reject(1)
  await killed.saver.save()
  killed.reject(2)
  isKilled = true
  await killed.saver.end()

  isKilled = false
  const { progress } = await checkpoint.load()
  assert.equal(progress?.tally.events, 1)
  const next = await run(progress?.tally, progress?.rejectedBytes)
  next.reject(2)
  next.reject(3)
  await next.saver.end()
  const lines = (await readFile(path, 'utf8')).trimEnd().split('\n')
  assert.deepEqual(
    lines.map((line) => JSON.parse(line)),
    [1, 2, 3].map((line) => ({ reason: 'no title', path: 'a', line, record: { line } })),
  )
})

test('an older file of rejected records is kept beside the new one', async (t) => {
  const folder = await someFolder(t)
  await writeFile(join(folder, 'a.rejected.ndjson'), 'fixed by hand')
  const rejected = createRejectedFile(join(folder, 'a.rejected.ndjson'), 0)
  assert.equal(await rejected.flush(), 0)
  assert.deepEqual(await readdir(folder), ['a.rejected.ndjson'])
  rejected.add(record(1))
  await rejected.flush()
  assert.deepEqual((await readdir(folder)).sort(), ['a.rejected.ndjson', 'a.rejected.old.ndjson'])
  assert.equal(await readFile(join(folder, 'a.rejected.old.ndjson'), 'utf8'), 'fixed by hand')
})

test('a path that is no file, such as a device, is never renamed', async (t) => {
  const folder = await someFolder(t)
  const rejected = createRejectedFile(folder, 0)
  rejected.add(record(1))
  await assert.rejects(rejected.flush(), { code: 'EISDIR' })
  assert.deepEqual(await readdir(folder), [])
})

test('a rejected record that nests too deep to be written is named by its place', async (t) => {
  const path = join(await someFolder(t), 'a.rejected.ndjson')
  const rejected = createRejectedFile(path, 0)
  const deep: unknown = JSON.parse(`${'['.repeat(100_000)}${']'.repeat(100_000)}`)
  rejected.add({ ...record(1), record: deep })
  await rejected.flush()
  assert.deepEqual(JSON.parse(await readFile(path, 'utf8')), {
    reason: 'no title',
    path: 'a',
    line: 1,
  })
})

test('the records that a file of rejected records still has go to the next round, and never over an input', () => {
  for (const [inputs, expected] of [
    [['/a.csv'], '/a.csv.rejected.ndjson'],
    [['/a.csv.rejected.ndjson'], '/a.csv.rejected-2.ndjson'],
    [['/a.csv.rejected.old.ndjson'], '/a.csv.rejected-2.ndjson'],
    [['/a.csv.rejected-9.ndjson'], '/a.csv.rejected-10.ndjson'],
    [
      ['/a.csv', '/a.csv.rejected.ndjson', '/a.csv.rejected-2.old.ndjson'],
      '/a.csv.rejected-3.ndjson',
    ],
  ] as const) {
    assert.equal(rejectedPathOf(inputs[0], new Set(inputs)), expected)
  }
})
