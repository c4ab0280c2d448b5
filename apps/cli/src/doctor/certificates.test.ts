import assert from 'node:assert/strict'
import { test } from 'vitest'
import { checkCertificate } from './certificates.ts'

// test/e2e/tls.full.test.ts reads the certificates of real servers.

const DAY_MS = 86_400_000

test('a certificate must last for a week, or a third of its life if that is shorter', () => {
  const stateOf = (lifeDays: number, leftDays: number) => {
    const to = Date.parse('2030-05-01T12:00:00Z')
    const now = to - leftDays * DAY_MS
    return checkCertificate('redis.example.com:6380', to - lifeDays * DAY_MS, to, now)
  }
  assert.deepEqual(
    [stateOf(90, 8), stateOf(90, 6), stateOf(1, 0.4), stateOf(1, 0.3)].map(({ state }) => state),
    ['ok', 'FAULT', 'ok', 'FAULT'],
  )
  const { text, fix } = stateOf(90, 6)
  assert.equal(text, 'the certificate of redis.example.com:6380 ends on 2030-05-01T12:00:00.000Z')
  assert.match(fix ?? '', /^openssl s_client -connect redis\.example\.com:6380 /)
})
