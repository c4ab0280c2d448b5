import assert from 'node:assert/strict'
import { DEFAULT_LIMITS } from '@sluice/contract'
import { test } from 'vitest'
import { createBodyParser } from './body-parser.ts'

const LENIENT = { strict: false }

function aText(words: number): Buffer {
  const quotes = Array.from({ length: 10 }, () => ({ text: 'word '.repeat(words) }))
  return Buffer.from(
    JSON.stringify({ service: 'custom', externalId: 'a', title: 'A thread', quotes }),
  )
}

test('the text that costs most memory is refused for what is wrong with it, and the next one is parsed', async (t) => {
  const parser = createBodyParser({ ...DEFAULT_LIMITS, jsonValues: DEFAULT_LIMITS.bodyBytes })
  t.onTestFinished(parser.close)
  const item = '[{}],'
  const costly = Buffer.from(`[${item.repeat(DEFAULT_LIMITS.bodyBytes / item.length - 1)}0]`)
  const [refused, parsed] = await Promise.all([
    parser.thread(costly, LENIENT),
    parser.thread(aText(10_000), LENIENT),
  ])
  assert(!refused.ok)
  assert.deepEqual(refused.errors, [
    { pointer: '', code: 'type', message: 'The body must be a JSON object.' },
  ])
  assert(parsed.ok)
})
