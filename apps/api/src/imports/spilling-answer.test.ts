import assert from 'node:assert/strict'
import { once } from 'node:events'
import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  type ServerResponse,
} from 'node:http'
import { connect } from 'node:net'
import { type TestContext, test } from 'vitest'
import { CallerGoneError } from '../request/problem-error.ts'
import { createBudget } from '../request/shares.ts'
import { createSpillingAnswer } from './post-import.ts'

const MIB = 1024 * 1024

async function ask(t: TestContext, listener: RequestListener) {
  const server = createServer(listener).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  assert.ok(typeof address === 'object' && address !== null)
  const socket = connect(address.port, '127.0.0.1').setEncoding('latin1').pause()
  t.onTestFinished(() => {
    socket.destroy()
    server.close().closeAllConnections()
  })
  socket.write('GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n')
  return socket
}

const answerOf = (request: IncomingMessage, response: ServerResponse, maxBytes: number) =>
  createSpillingAnswer(
    { request, response, tenant: 'acme' },
    createBudget({ maxBytes, tenantShare: 1 }),
  )

const line = (at: number) => `${String(at).padStart(1_023, ' ')}\n`

test('a reader that begins late gets everything, in order', async (t) => {
  const written = Promise.withResolvers<void>()
  const socket = await ask(t, async (request, response) => {
    const answer = answerOf(request, response, 64 * MIB)
    for (let at = 0; at < 32 * 1024; at++) await answer.write(line(at))
    written.resolve()
    // The reader reads while more comes.
    for (let at = 32 * 1024; at < 40 * 1024; at++) await answer.write(line(at))
    await answer.end()
    response.end()
  })
  await written.promise
  let text = ''
  for await (const piece of socket) text += piece
  const numbers = Array.from(text.matchAll(/ +(\d+)\n/g), ([, number]) => Number(number))
  assert.deepEqual(
    numbers,
    Array.from({ length: 40 * 1024 }, (_, at) => at),
  )
})

test('a reader that leaves too much unread is cut, and the file is closed', async (t) => {
  const failed = Promise.withResolvers<unknown>()
  const ended = Promise.withResolvers<void>()
  await ask(t, async (request, response) => {
    const answer = answerOf(request, response, MIB)
    try {
      for (;;) await answer.write(line(0))
    } catch (error) {
      failed.resolve(error)
      assert.equal(response.destroyed, true)
    } finally {
      await answer.end()
      ended.resolve()
    }
  })
  assert.ok((await failed.promise) instanceof CallerGoneError)
  await ended.promise
})
