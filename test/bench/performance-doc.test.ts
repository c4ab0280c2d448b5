import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { test } from 'vitest'
import { fillResults, resultsDocument } from '../../bench/src/report/documents.ts'
import { readResults } from '../../bench/src/report/results.ts'

const path = (name: string) => fileURLToPath(new URL(`../../${name}`, import.meta.url))

test('the documents show the newest results; if not, run `npx -y pnpm@12 bench --document`', async () => {
  const results = await readResults(path('bench/results'))
  const performance = await readFile(path('docs/performance.md'), 'utf8')
  assert.equal(performance, fillResults(performance, results))
  assert.equal(await readFile(path('bench/results/README.md'), 'utf8'), resultsDocument(results))
})
