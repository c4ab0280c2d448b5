import assert from 'node:assert/strict'
import fc from 'fast-check'
import { test } from 'vitest'
import { isWellFormedKey, newKeyText } from './key.ts'
import { keyHash } from './keyring.ts'

const DIGITS = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

test('a new key is well formed and no other', () => {
  const keys = Array.from({ length: 1_000 }, newKeyText)
  for (const key of keys) {
    assert.match(key, /^slc_[0-9A-Za-z]{36}$/)
    assert.ok(isWellFormedKey(key))
  }
  assert.equal(new Set(keys).size, keys.length)
})

test('any mistyped character is detected', () => {
  const key = newKeyText()
  const typo = fc.record({ at: fc.nat(key.length - 1), digit: fc.constantFrom(...DIGITS) })
  fc.assert(
    fc.property(typo, ({ at, digit }) => {
      const typed = key.slice(0, at) + digit + key.slice(at + 1)
      assert.equal(isWellFormedKey(typed), typed === key)
    }),
  )
})

test('two characters in the wrong order are detected', () => {
  const key = newKeyText()
  for (let at = 4; at < key.length - 1; at++) {
    const swapped = `${key.slice(0, at)}${key[at + 1]}${key[at]}${key.slice(at + 2)}`
    assert.equal(isWellFormedKey(swapped), swapped === key)
  }
})

test('no other text is a key', () => {
  const key = newKeyText()
  for (const text of [
    '',
    'slc_',
    key.slice(0, -1),
    `${key}0`,
    ` ${key}`,
    `${key}\n`,
    key.replace('slc_', 'SLC_'),
  ]) {
    assert.equal(isWellFormedKey(text), false, JSON.stringify(text))
  }
  fc.assert(fc.property(fc.string({ maxLength: 80 }), (text) => !isWellFormedKey(text)))
})

test('every digit is as likely as any other', () => {
  const counts = new Map<string, number>()
  const drawn = Array.from({ length: 4_000 }, () => newKeyText().slice(4, 34)).join('')
  for (const digit of drawn) counts.set(digit, (counts.get(digit) ?? 0) + 1)
  const expected = drawn.length / DIGITS.length
  const chiSquare = Array.from(
    DIGITS,
    (digit) => ((counts.get(digit) ?? 0) - expected) ** 2 / expected,
  ).reduce((sum, term) => sum + term)
  // 61 degrees of freedom: chance passes 140 once in ten million runs; bytes taken modulo 62 give
  // about 3,000.
  assert.ok(chiSquare < 140, `chi-square ${chiSquare}`)
})

test('what is stored is the SHA-256', () => {
  assert.equal(keyHash('abc'), 'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad')
})
