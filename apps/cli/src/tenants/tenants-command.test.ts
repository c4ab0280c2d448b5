import assert from 'node:assert/strict'
import { createKey, revokeKey } from '@sluice/credentials/keys'
import { createBatchStore, mongoCommands } from '@sluice/store'
import { testDatabase } from '@sluice/test-support'
import { type TestContext, test } from 'vitest'
import { tenantsCommand } from './tenants-command.ts'

const STAMP = Date.UTC(2026, 0, 2, 3, 4) * 1_000

/** Runs `sluice tenants …` on a database of the test's own, in which two tenants have threads. */
async function terminal(t: TestContext) {
  const db = await testDatabase(t)
  const store = createBatchStore(mongoCommands(db))
  const names = ['acme/one', 'acme/two', 'beta/one', 'acme/one']
  for (const [at, name] of names.entries()) {
    const [tenant = '', externalId = ''] = name.split('/')
    const source = { service: 'slack' as const, externalId, title: 'A thread' }
    const quotes = [{ externalId: 'a', text: 'two words' }, { text: `number ${at}` }]
    const request = { id: `request-${at}`, tenant, stamp: STAMP + at * 60_000_000 }
    await store.store([{ ...request, redelivered: false, thread: { source, quotes } }])
  }
  await store.settle()
  let open = 0
  const openDb = async () => {
    open++
    return { db, close: async () => void open-- }
  }
  async function run(...args: string[]): Promise<string[]> {
    const lines: string[] = []
    await tenantsCommand({ openDb, print: (line) => void lines.push(line) })
      .parseAsync(args, { from: 'user' })
      .finally(() => assert.equal(open, 0, 'the database is closed'))
    return lines
  }
  return { db, run }
}

test('tenants are listed with what they have stored, and their keys that work', async (t) => {
  const { db, run } = await terminal(t)
  for (const tenant of ['acme', 'new', 'gone']) await createKey(db, { tenant, name: tenant })
  await createKey(db, { role: 'operator', name: 'on-call' })
  await createKey(db, { tenant: 'acme', name: 'second' })
  await revokeKey(db, 'gone')
  assert.deepEqual(await run('list'), [
    'TENANT  THREADS  QUOTES  ABOUT MB  KEYS  LAST POST',
    'acme    2        5       0.0       2     2026-01-02T03:07Z',
    'beta    1        2       0.0       0     2026-01-02T03:06Z',
    'new     0        0       0.0       1     -',
  ])
  const [acme, , fresh] = JSON.parse((await run('list', '--json')).join('\n'))
  assert.deepEqual(
    [acme.tenant, acme.threads, acme.quotes, acme.keys, acme.lastPostAt],
    ['acme', 2, 5, 2, '2026-01-02T03:07:00.000Z'],
  )
  assert.deepEqual(fresh, { tenant: 'new', threads: 0, quotes: 0, bytes: 0, keys: 1 })
})

test('the estimate of bytes is near what the documents have', async (t) => {
  const { db, run } = await terminal(t)
  const sizes = await Promise.all(
    ['sources', 'quotes'].map((collStats) => db.command({ collStats })),
  )
  const stored = sizes.reduce((sum, { size }) => sum + size, 0)
  const listed: { bytes: number }[] = JSON.parse((await run('list', '--json')).join('\n'))
  const estimated = listed.reduce((sum, { bytes }) => sum + bytes, 0)
  assert.ok(estimated > stored / 2 && estimated < stored * 2, `${estimated} of ${stored} bytes`)
})
