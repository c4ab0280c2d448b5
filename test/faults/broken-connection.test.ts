import assert from 'node:assert/strict'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import type { Socket } from 'node:net'
import {
  CommandFailedError,
  createBatchStore,
  mongoCommands,
  type PostRequest,
} from '@sluice/store'
import { connectStore } from '@sluice/store/connect'
import { requiredUrl, testDatabase } from '@sluice/test-support'
import { type TestContext, test } from 'vitest'
import { openTcpProxy } from '../support/tcp-proxy.ts'
import { BUSY_MS, until } from '../support/until.ts'

/** Workers give a command ten seconds. */
const LIMIT_MS = 2_000

function request(id: string, title = id): PostRequest {
  const thread = {
    source: { service: 'slack' as const, externalId: id, title },
    quotes: [{ text: 'two words' }],
  }
  return { id, tenant: 'acme', stamp: 1, redelivered: false, thread }
}

// A killed MongoDB breaks connections like this if a command arrives within the same turn of the
// event loop.
test('a batch whose connection breaks before its command is written fails in time, and the next one is stored', async (t) => {
  const db = await testDatabase(t)
  const sockets = watchSockets(t)
  const url = new URL(requiredUrl('MONGODB_URL'))
  url.pathname = `/${db.databaseName}`
  const store = connectStore(url.href)
  t.onTestFinished(store.close)
  const batchStore = createBatchStore(mongoCommands(store.db, { limitMs: LIMIT_MS }))
  await batchStore.store([request('first')])

  for (const socket of sockets) socket.destroy()
  const began = performance.now()
  await assert.rejects(
    batchStore.store([request('second')]),
    (error) => error instanceof CommandFailedError,
  )
  assert(performance.now() - began < LIMIT_MS + BUSY_MS)
  const answers = await batchStore.store([{ ...request('second'), redelivered: true }])
  assert.equal(answers.size, 1)
  await batchStore.settle()
})

test('a batch whose connection breaks while its command is being written fails like one that meets an unavailable MongoDB', async (t) => {
  const proxy = await openTcpProxy(t, requiredUrl('MONGODB_URL'))
  const sockets = watchSockets(t)
  const url = new URL(proxy.url)
  url.pathname = `/${(await testDatabase(t)).databaseName}`
  const store = connectStore(url.href)
  t.onTestFinished(store.close)
  const batchStore = createBatchStore(mongoCommands(store.db))
  await batchStore.store([request('first')])

  proxy.freeze()
  const storing = batchStore.store([request('second', 'word '.repeat(1_000_000))])
  storing.catch(() => {})
  await until('the command waits to be written', async () =>
    sockets.some((socket) => socket.writableNeedDrain),
  )
  await proxy.shut()
  await assert.rejects(storing, (error) => error instanceof CommandFailedError && error.isCertain)
})

/** Returns the sockets that this process opens as a client from now on. */
function watchSockets(t: TestContext): Socket[] {
  const sockets: Socket[] = []
  const note = (message: unknown) => {
    if (typeof message === 'object' && message !== null && 'socket' in message)
      sockets.push(message.socket as Socket)
  }
  subscribe('net.client.socket', note)
  t.onTestFinished(() => void unsubscribe('net.client.socket', note))
  return sockets
}
