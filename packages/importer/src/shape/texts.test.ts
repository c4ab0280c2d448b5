import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { test } from 'vitest'
import { boundedId, cut, fits, split } from './texts.ts'

test('lengths count code points', () => {
  assert.ok(fits('😀😀', 2))
  assert.ok(!fits('😀😀😀', 2))
  assert.equal(cut('😀😀😀', 2), '😀…')
  assert.equal(cut('abc', 3), 'abc')
})

test('a text is split after white space that is near the bound, and nothing of it is lost', () => {
  const text = 'one two three four five'
  assert.deepEqual(split(text, 10), ['one two ', 'three ', 'four five'])
  assert.equal(split(text, 10).join(''), text)
  assert.deepEqual(split('😀'.repeat(5), 2), ['😀😀', '😀😀', '😀'])
  assert.deepEqual(split(`${'a'.repeat(4)}${' '.repeat(9)}b`, 4), ['aaaa', ' b'])
})

test('an id of more than 512 characters becomes its first 440, ~, and its SHA-256 in base64url', () => {
  assert.equal(boundedId('a'.repeat(512)), 'a'.repeat(512))
  const long = 'é'.repeat(513)
  const digest = createHash('sha256').update(long).digest('base64url')
  assert.equal(boundedId(long), `${'é'.repeat(440)}~${digest}`)
  assert.notEqual(boundedId(`${long}1`), boundedId(`${long}2`))
})
