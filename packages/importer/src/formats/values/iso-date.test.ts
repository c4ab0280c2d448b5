// Tests of writing times as ISO dates.
import { expect, test } from 'vitest'
import { isoDateOf } from './iso-date.ts'

test('writes what Date writes, decimals past the third cut off', () => {
  for (let seconds = 0.0004; seconds < 8e9; seconds += 76_543_210.098_765) {
    expect(isoDateOf(seconds)).toBe(new Date(Math.floor(Number((seconds * 1000).toFixed(3)))).toISOString())
  }
  expect(isoDateOf(1714550400.12)).toBe('2024-05-01T08:00:00.120Z')
  expect(isoDateOf(1714550400.999999)).toBe('2024-05-01T08:00:00.999Z')
  expect(isoDateOf(-1)).toBe('1969-12-31T23:59:59.000Z')
  expect(isoDateOf(1e12)).toBeUndefined()
  expect(isoDateOf(-1e12)).toBeUndefined()
  expect(isoDateOf(Number.NaN)).toBeUndefined()
})
