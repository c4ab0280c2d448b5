import assert from 'node:assert/strict'
import { createClient } from '@sluice/client'
import { test } from 'vitest'
import { readDocument } from './names.ts'

test('packages/client/README.md has a row for each call', () => {
  const calls = Object.keys(createClient({ url: 'http://localhost', apiKey: 'key' }))
  const document = readDocument('packages/client/README.md')
  const missing = calls.filter((name) => !document.includes(`| \`${name}(`))
  assert.deepEqual(missing, [])
})
