import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { KeyCheck } from '@sluice/credentials/keys'
import express from 'express'
import { test, vi } from 'vitest'
import { createAttemptLimit, findSession, type LoginDeps } from './login.ts'

test('a session outlasts an outage of MongoDB, and ends once it is back and its key is revoked', async (t) => {
  const visitor = { role: 'operator', by: 'ada', keyId: 'id' } as const
  const open = new Set(['token'])
  const log: unknown[] = []
  let check: KeyCheck = { outcome: 'unavailable' }
  const fail = () => assert.fail('only looks a session up')
  const deps: LoginDeps = {
    sessions: {
      createLink: fail,
      useLink: fail,
      open: fail,
      find: async (token) => (open.has(token) ? visitor : undefined),
      close: async (token) => void open.delete(token),
    },
    keyring: { find: fail, findById: async () => check },
    isSecure: false,
    log: { info: (line: object, msg?: string) => void log.push({ ...line, msg }) },
  }
  const app = express().use(async (request, response) =>
    response.json((await findSession(request, deps)) ?? null),
  )
  const server = createServer(app).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.onTestFinished(() => void server.close().closeAllConnections())
  const url = `http://127.0.0.1:${Object(server.address()).port}`
  const find = async () => (await fetch(url, { headers: { cookie: 'a=b; sluice=token' } })).json()
  assert.deepEqual(Object(await find()).visitor, visitor)
  check = { outcome: 'unknown' }
  assert.equal(await find(), null)
  assert.equal(open.size, 0)
  assert.deepEqual(log, [{ role: 'operator', by: 'ada', msg: 'session.revoked' }])
})

test('an address that tried ten logins waits for the next minute, and holds up no other one', (t) => {
  vi.useFakeTimers()
  t.onTestFinished(() => void vi.useRealTimers())
  const mayTry = createAttemptLimit()
  const tries = (address: string, times: number) =>
    Array.from({ length: times }, () => mayTry(address))
  assert.deepEqual(tries('10.0.0.1', 11), [...Array(10).fill(true), false])
  assert.equal(mayTry('10.0.0.2'), true)
  vi.advanceTimersByTime(59_999)
  assert.equal(mayTry('10.0.0.1'), false)
  vi.advanceTimersByTime(1)
  assert.equal(mayTry('10.0.0.1'), true)
  for (let address = 1; address < 10_000; address++) mayTry(String(address))
  assert.equal(mayTry('one too many'), false)
  assert.equal(mayTry('10.0.0.1'), true, 'an address that is known tries on')
})
