// Tests of writing times as ISO dates.
import { expect, onTestFinished, test, vi } from 'vitest'
import { isoDateIn, isoDateOf } from './iso-date.ts'

test('writes what Date writes, decimals past the third cut off', () => {
  for (let seconds = 0.4; seconds < 8e9; seconds += 76_543_210.098_765) {
    expect(isoDateOf(seconds)).toBe(
      new Date(Math.floor(Number((seconds * 1000).toFixed(3)))).toISOString(),
    )
  }
  expect(isoDateOf(0)).toBe(undefined)
  expect(isoDateOf(1714550400.12)).toBe('2024-05-01T08:00:00.120Z')
  expect(isoDateOf(1714550400.999999)).toBe('2024-05-01T08:00:00.999Z')
  expect(isoDateOf(-1)).toBe(undefined)
  expect(isoDateOf(-2)).toBe('1969-12-31T23:59:58.000Z')
  expect(isoDateIn('1904-01-01 00:00:00')).toBe(undefined)
  expect(isoDateOf(1e15)).toBeUndefined()
  expect(isoDateOf(-1e15)).toBeUndefined()
  expect(isoDateOf(Number.NaN)).toBeUndefined()
})

test('a number that is too large for seconds counts milliseconds', () => {
  expect(isoDateOf(1714550400120)).toBe('2024-05-01T08:00:00.120Z')
  expect(isoDateOf(99_999_999_999)).toBe('5138-11-16T09:46:39.000Z')
})

test.each([
  ['2024-05-01T09:30:00', '2024-05-01T09:30:00.000Z'],
  ['2024-05-01 09:30', '2024-05-01T09:30:00.000Z'],
  ['2024-05-01T09:30:00.12', '2024-05-01T09:30:00.120Z'],
  ['May 1, 2024 9:30 AM', '2024-05-01T09:30:00.000Z'],
  ['2024-05-01', '2024-05-01T00:00:00.000Z'],
  ['2024-05-01T09:30:00+02:00', '2024-05-01T07:30:00.000Z'],
  ['2024-05-01T09:30-0700', '2024-05-01T16:30:00.000Z'],
  ['Wed May 01 09:30:00 +0200 2024', '2024-05-01T07:30:00.000Z'],
  ['Wed May 01 2024 09:30:00 GMT+0200 (CEST)', '2024-05-01T07:30:00.000Z'],
  ['soon', undefined],
  ['', undefined],
])('reads %s by its zone, else in UTC, whatever zone the computer has', (text, date) => {
  vi.stubEnv('TZ', 'America/New_York')
  onTestFinished(() => void vi.unstubAllEnvs())
  expect(isoDateIn(text)).toBe(date)
})
