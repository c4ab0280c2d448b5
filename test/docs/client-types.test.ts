import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import type * as client from '@sluice/client'
import { createClient } from '@sluice/client'
import type * as contract from '@sluice/contract'
import { test } from 'vitest'
import { CLIENT_TYPES, clientTypes } from './client-types.ts'
import { readDocument } from './names.ts'

test('the types of the client agree with the schemas; if not, run `pnpm run docs`', async () => {
  assert.equal(
    await readFile(new URL(`../../${CLIENT_TYPES}`, import.meta.url), 'utf8'),
    clientTypes(),
  )
})

test('packages/client/README.md has a row for each call', () => {
  const calls = Object.keys(createClient({ url: 'http://localhost', apiKey: 'key' }))
  const document = readDocument('packages/client/README.md')
  const missing = calls.filter((name) => !document.includes(`| \`${name}(`))
  assert.deepEqual(missing, [])
})

type Same<A, B> = [A, B] extends [B, A] ? true : never

// The compiler checks what the writer of the types made of the schemas.
const same: true[] = [
  true satisfies Same<client.ThreadRequest, contract.ThreadRequest>,
  true satisfies Same<client.ThreadAnswer, contract.ThreadAnswer>,
  true satisfies Same<client.AcceptedAnswer, contract.AcceptedAnswer>,
  true satisfies Same<client.DeletedItem, contract.DeletedItem>,
  true satisfies Same<client.DeletionAnswer, contract.DeletionAnswer>,
  true satisfies Same<client.JobAnswer, contract.JobAnswer>,
  true satisfies Same<client.SourcePage, contract.SourcePage>,
  true satisfies Same<client.SourceList, contract.SourceList>,
  true satisfies Same<client.Problem, contract.Problem>,
  true satisfies Same<client.LimitName, contract.LimitName>,
]

test('the types of the client are those of the contract', () => {
  assert.equal(same.length, 10)
})
