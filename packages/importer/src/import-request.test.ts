import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'vitest'
import { failureOf } from './import-request.ts'

test('a state folder that does not exist is named, with the option that chooses another', async () => {
  const file = join(tmpdir(), `absent-${process.pid}`, 'a.sluice-checkpoint')
  const error = await writeFile(file, '').then(
    () => undefined,
    (failure: unknown) => failure,
  )
  const { state, problem } = failureOf(error)
  assert.equal(state, 'failed')
  assert.ok(problem?.includes(file) && problem.includes('--state-dir'), problem)
})
