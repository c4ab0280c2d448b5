import assert from 'node:assert/strict'
import { test } from 'vitest'
import { stateOf } from './imports.ts'

test('an import that broke off is no ended one, and of one by many requests the end is not known', () => {
  const counts = { created: 1_990, updated: 0, unchanged: 0, failed: 5 }
  const done = {
    tenant: 'acme',
    by: 'k',
    isWaitedFor: true,
    received: 2_000,
    counts,
    again: 5,
    done: true,
  }
  const shownOf = (ended: 'whole' | 'part' | 'cut') =>
    String(stateOf({ ...done, ended, begunAt: 0, changedAt: undefined })).replace(/<[^>]*>/g, '')
  assert.deepEqual((['cut', 'part', 'whole'] as const).map(shownOf), [
    'stopped after 1,995 items',
    'last request',
    'ended',
  ])
})
