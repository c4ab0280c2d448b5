import assert from 'node:assert/strict'
import type { Hit } from '@sluice/contract'
import { test } from 'vitest'
import { hitCells } from './find.ts'

const HIT: Hit = {
  kind: 'job',
  id: 'a',
  tenant: 'acme',
  state: 'completed',
  name: 'slack/a & b',
  threads: 1,
}

test('a hit links to the page of its thread', () => {
  const row = String(hitCells(HIT))
  assert.match(row, /href="\/thread\?tenant=acme&amp;service=slack&amp;externalId=a\+%26\+b"/)
})

test('a job of several threads links to none of them', () => {
  assert.doesNotMatch(
    String(hitCells({ ...HIT, threads: 2, name: 'slack/a … slack/b (2)' })),
    /thread\?/,
  )
})
