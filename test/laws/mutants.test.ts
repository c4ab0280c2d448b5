import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { it } from 'vitest'
import { mutants } from './explorer/mutants.ts'

// `pnpm mutants` removes each guard of the store by editing its code: this test compares each edit
// with the current code.

it('every edit of a mutant finds its text exactly once', () => {
  const found = mutants.flatMap(({ name, edits }) =>
    edits.map(({ file, find }) => {
      const code = readFileSync(
        new URL(`../../packages/store/src/${file}`, import.meta.url),
        'utf8',
      )
      return { name, find, times: code.split(find).length - 1 }
    }),
  )
  assert(found.length > 0)
  assert.deepEqual(
    found.filter(({ times }) => times !== 1),
    [],
  )
})

it('no two mutants have the same name', () => {
  assert.equal(new Set(mutants.map(({ name }) => name)).size, mutants.length)
})
