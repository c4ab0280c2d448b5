import assert from 'node:assert/strict'
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'vitest'
import { openFile } from './export-output.ts'

test('a file of which another export cut off pages is not complete, and the next run begins again', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-export-'))
  t.onTestFinished(() => rm(folder, { recursive: true }))
  const file = join(folder, 'threads.ndjson')
  const all = await openFile(file, 'all')
  const bytes = await all.write('{}\n')
  await all.save?.({ lines: 1, bytes })
  const slack = await openFile(file, 'slack')
  await assert.rejects(
    async () => all.complete?.({ lines: 1, bytes }),
    /Another export has written /,
  )
  await Promise.all([all.close?.(), slack.close?.()])
  assert.deepEqual(await readdir(folder), ['threads.ndjson.sluice-part'])
  const again = await openFile(file, 'all')
  await again.complete?.({ lines: 1, bytes: again.begin.bytes + (await again.write('{}\n')) })
  await again.close?.()
  assert.equal(await readFile(file, 'utf8'), '{}\n')
  assert.deepEqual(await readdir(folder), ['threads.ndjson'])
})
