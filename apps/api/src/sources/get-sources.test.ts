import assert from 'node:assert/strict'
import { EventEmitter } from 'node:events'
import { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import { setImmediate } from 'node:timers/promises'
import { NO_PREFERENCES, type SourcePage } from '@sluice/contract'
import { test } from 'vitest'
import { createRequestSignals } from '../request/middleware.ts'
import { CallerGoneError, ProblemError } from '../request/problem-error.ts'
import { createBudget, createTenantTurns } from '../request/shares.ts'
import { getSource } from './get-sources.ts'

const ID = 'x'.repeat(24)

/** A handler with room for two reads, none of which ends by itself, and those that it has begun. */
function setUp() {
  const graceOver = new AbortController()
  const signalOf = createRequestSignals(graceOver.signal)
  const begun: { end(page?: SourcePage): void; gone: AbortSignal }[] = []
  const handler = getSource({
    readBudget: createBudget({ maxBytes: 4, tenantShare: 0.5 }),
    readTurns: createTenantTurns(),
    bodyBudget: createBudget({ maxBytes: 1_000, tenantShare: 1 }),
    enqueuer: { quotaLeft: () => undefined },
    readSource: (_tenant, _id, _query, gone) =>
      new Promise((resolve, reject) => {
        begun.push({ end: resolve, gone })
        gone.addEventListener('abort', () => reject(new Error('aborted')))
      }),
  })
  const read = (tenant: string) => {
    const request = new IncomingMessage(new Socket())
    request.url = `/sources/${ID}`
    const response = new ServerResponse(request)
    const signal = signalOf(response)
    const log = {}
    const context = {
      requestId: 'r',
      request,
      response,
      signal,
      route: 'none',
      path: '',
      startedAt: 0,
      tenant,
      prefer: NO_PREFERENCES,
      chargedBytes: 0,
      log,
    }
    return {
      answer: handler(context, { id: ID }),
      hangUp: () => EventEmitter.prototype.emit.call(response, 'close'),
    }
  }
  return { begun, read, endGrace: () => graceOver.abort() }
}

const isProblem = (code: string) => (error: unknown) =>
  error instanceof ProblemError && error.code === code

test('a tenant that has its share of reads gets a 503, and other tenants do not', async () => {
  const { begun, read } = setUp()
  const reads = [read('acme'), read('acme'), read('globex')]
  await setImmediate()
  await assert.rejects(read('acme').answer, isProblem('overloaded'))
  for (const { end } of begun) end()
  for (const { answer } of reads) await assert.rejects(answer, isProblem('source_unknown'))
  const again = read('acme')
  await setImmediate()
  begun.at(-1)?.end()
  await assert.rejects(again.answer, isProblem('source_unknown'))
})

test('a read ends when its caller hangs up', async () => {
  const { begun, read } = setUp()
  const { answer, hangUp } = read('acme')
  await setImmediate()
  hangUp()
  await assert.rejects(answer, CallerGoneError)
  assert.equal(begun[0]?.gone.aborted, true)
})

test('a read that goes on at the end of the grace time is answered 503', async () => {
  const { read, endGrace } = setUp()
  const { answer } = read('acme')
  await setImmediate()
  endGrace()
  await assert.rejects(answer, isProblem('stopping'))
})

test('answers that wait to be read have a bound of memory, beyond which a read gets a 503', async () => {
  const { begun, read } = setUp()
  const page: SourcePage = JSON.parse(`{"source":{},"quotes":[{"text":"${'x'.repeat(600)}"}]}`)
  const [first, second] = [read('acme'), read('globex')]
  await setImmediate()
  for (const { end } of begun) end(page)
  await first.answer
  await assert.rejects(second.answer, isProblem('overloaded'))
  first.hangUp()
  const later = read('globex')
  await setImmediate()
  begun.at(-1)?.end(page)
  await later.answer
})
