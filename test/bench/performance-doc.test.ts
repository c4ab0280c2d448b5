import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { test } from 'vitest'
import { fillResults } from '../../bench/src/report/performance-section.ts'
import { readResults } from '../../bench/src/report/results.ts'

const path = (name: string) => fileURLToPath(new URL(`../../${name}`, import.meta.url))

test('docs/performance.md shows the newest results; if not, run `pnpm bench --document`', async () => {
  const document = await readFile(path('docs/performance.md'), 'utf8')
  assert.equal(document, fillResults(document, await readResults(path('bench/results'))))
})
