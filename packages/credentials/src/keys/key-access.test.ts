import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { requiredUrl, testDatabase } from '@sluice/test-support'
import { MongoClient } from 'mongodb'
import { type TestContext, test } from 'vitest'
import { keyAccess } from './key.ts'
import { createKey } from './manage-keys.ts'

/**
 * A proxy to the database that can fall silent: connections stay open, and no byte passes any more.
 */
async function silenceableUrl(t: TestContext) {
  const url = new URL(requiredUrl('MONGODB_URL'))
  const target = { port: Number(url.port), host: url.hostname }
  const sockets: Socket[] = []
  const server = createServer((near) => {
    const far = connect(target)
    for (const socket of [near, far]) sockets.push(socket.on('error', () => near.destroy()))
    near.pipe(far).pipe(near)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.onTestFinished(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  const address = server.address()
  if (address !== null && typeof address === 'object') url.port = String(address.port)
  return { url: url.href, silence: () => sockets.forEach((socket) => void socket.unpipe().pause()) }
}

test('more than a hundred keys are found in one reply', async (t) => {
  const db = await testDatabase(t)
  const created = await Promise.all(
    Array.from({ length: 150 }, (_, at) => createKey(db, { tenant: 't', name: `n${at}` })),
  )
  const ids = created.map(({ record }) => record.id)
  const found = await keyAccess(db).findKeys([...ids, 'none'])
  assert.deepEqual(found.map(({ id }) => id).sort(), ids.sort())
})

test('a lookup fails in its time if the store falls silent', async (t) => {
  const db = await testDatabase(t)
  const { record } = await createKey(db, { tenant: 't', name: 'n' })
  const { url, silence } = await silenceableUrl(t)
  const client = await new MongoClient(url, {
    directConnection: true,
    serverSelectionTimeoutMS: 1_000,
  }).connect()
  t.onTestFinished(() => client.close())
  const { findKeys } = keyAccess(client.db(db.databaseName), 500)
  assert.deepEqual(await keyAccess(client.db(db.databaseName)).findKeys([record.id]), [record])
  silence()
  const asked = performance.now()
  await assert.rejects(findKeys([record.id]))
  // The driver's own limits are 30 s and more.
  assert.ok(performance.now() - asked < 10_000)
})
