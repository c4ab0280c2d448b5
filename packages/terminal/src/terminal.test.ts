import assert from 'node:assert/strict'
import { InvalidArgumentError } from 'commander'
import { test } from 'vitest'
import { describeSeconds, parseDuration, parseEnd, tableLines } from './terminal.ts'

test('a duration is a number and a unit', () => {
  const durations = {
    '0s': 0,
    '15s': 15,
    '30m': 1_800,
    '24h': 86_400,
    '90d': 7_776_000,
    '2w': 1_209_600,
  }
  for (const [text, seconds] of Object.entries(durations))
    assert.equal(parseDuration(text), seconds)
  for (const text of ['', '5', 'h', '-1h', '1.5h', '1y', '24 h', '9999999d']) {
    assert.throws(() => parseDuration(text), InvalidArgumentError, text)
  }
})

test('a duration is shown with its unit', () => {
  const durations = {
    '0s': 0,
    '15s': 15,
    '30m': 1_800,
    '90m': 5_400,
    '24h': 86_400,
    '3.5h': 12_600,
    '90d': 7_775_999,
  }
  for (const [text, seconds] of Object.entries(durations))
    assert.equal(describeSeconds(seconds), text)
})

test('an end is a time from now or an ISO 8601 date, in UTC where it has no offset', () => {
  const ends = {
    '2030-01-31': '2030-01-31T00:00:00.000Z',
    '2030-01-31T12:00': '2030-01-31T12:00:00.000Z',
    '2030-01-31T12:00:30.5Z': '2030-01-31T12:00:30.500Z',
    '2030-01-31T12:00+02:00': '2030-01-31T10:00:00.000Z',
  }
  for (const [text, end] of Object.entries(ends)) assert.equal(parseEnd(text).toISOString(), end)
  const in90Days = parseEnd('90d').getTime() - Date.now() - 7_776_000_000
  assert.ok(in90Days <= 0 && in90Days > -1_000)
  for (const text of [
    '',
    'tomorrow',
    '2030',
    '2030-02-30',
    '2030-13-01',
    '2030-01-31T25:00',
    '2030-01-31 12:00',
    '01/31/2030',
  ]) {
    assert.throws(() => parseEnd(text), InvalidArgumentError, text)
  }
})

test('a very long cell of a table moves its own line only', () => {
  const id = 'i'.repeat(512)
  assert.deepEqual(
    tableLines([
      ['ID', 'TITLE'],
      ['short', 'One'],
      [id, 'Two'],
    ]),
    [`${'ID'.padEnd(60)}  TITLE`, `${'short'.padEnd(60)}  One`, `${id}  Two`],
  )
})
