import assert from 'node:assert/strict'
import { createKey, revokeKey } from '@sluice/credentials/keys'
import { createBatchStore, mongoCommands } from '@sluice/store'
import { testDatabase } from '@sluice/test-support'
import { type TestContext, test } from 'vitest'
import { tenantsCommand } from './tenants-command.ts'

const DAY = 86_400_000_000
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
    const request = { id: `request-${at}`, tenant, stamp: STAMP + at * DAY }
    await store.store([{ ...request, redelivered: false, thread: { source, quotes } }])
  }
  await store.settle()
  let open = 0
  const openDb = async () => {
    open++
    return { db, close: async () => void open-- }
  }
  const asked: string[] = []
  async function run(...args: string[]): Promise<string[]> {
    const lines: string[] = []
    const print = (line: string) => void lines.push(line)
    await tenantsCommand({
      ...{ openDb, print, show: print, env: {} },
      withQueue: () => assert.fail('Redis is asked'),
      confirm: async (question) => asked.push(question) < 0,
    })
      .parseAsync(args, { from: 'user' })
      .finally(() => assert.equal(open, 0, 'the database is closed'))
    return lines
  }
  return { db, run, asked }
}

test('tenants are listed with what they have stored, and their keys that work', async (t) => {
  const { db, run } = await terminal(t)
  for (const tenant of ['acme', 'new', 'gone']) await createKey(db, { tenant, name: tenant })
  await createKey(db, { role: 'operator', name: 'on-call' })
  await createKey(db, { tenant: 'acme', name: 'second' })
  await revokeKey(db, 'gone')
  assert.deepEqual(await run('list'), [
    'TENANT  THREADS  QUOTES  ABOUT MB  KEYS  LAST POST          RETAINED',
    'acme    2        5       0.0       2     2026-01-05T03:04Z  -',
    'beta    1        2       0.0       0     2026-01-04T03:04Z  -',
    'new     0        0       0.0       1     -                  -',
  ])
  const [acme, , fresh] = JSON.parse((await run('list', '--json')).join('\n'))
  assert.deepEqual(
    [acme.tenant, acme.threads, acme.quotes, acme.keys, acme.lastPostAt],
    ['acme', 2, 5, 2, '2026-01-05T03:04:00.000Z'],
  )
  const nothing = { threads: 0, quotes: 0, bytes: 0, retained: '' }
  assert.deepEqual(fresh, { tenant: 'new', keys: 1, ...nothing })
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

test('a tenant is deleted only after a question that names it and what it has', async (t) => {
  const { run, asked } = await terminal(t)
  await assert.rejects(run('delete', 'acme'), /^UserError: Nothing was deleted/)
  await assert.rejects(run('delete', '', '--yes'), /^UserError: The name of the tenant is blank/)
  assert.deepEqual(asked, ['Delete the tenant acme for good: 2 threads, 5 quotes, 0 keys?'])
})

test('a retention is set, replaced and listed, goes with its tenant, and a dry run only counts', async (t) => {
  const { run, asked } = await terminal(t)
  const between = `${Math.floor((Date.now() * 1_000 - STAMP) / DAY) - 2}d`
  assert.deepEqual(await run('retain', 'acme', between, '--dry-run'), [
    `The retention of acme would be ${between}.`,
    'Due now: 1 thread, the oldest of 2026-01-03T03:04Z.',
  ])
  assert.match((await run('list'))[1] ?? '', / -$/)
  await assert.rejects(run('retain', 'acme', '0d'), /at least an hour\. Write off/)
  await assert.rejects(run('retain', 'acme', '1h'), /The rule was not set\. Add --yes/)
  assert.match(asked.join(), /^Set the retention of acme to 60m\? 2 threads will be deleted/)
  assert.match((await run('list'))[1] ?? '', / -$/)
  assert.match((await run('retain', 'acme', '1h', '--yes')).join(), /Due now: 2 threads, /)
  await run('retain', 'acme', '30d', '--service', 'slack', '--yes')
  const changed = await run('retain', 'acme', '9d', '--service', 'slack', '--yes')
  assert.match(changed.join(), /: 2 threads,/)
  assert.match((await run('list'))[1] ?? '', / 60m, slack 9d$/)
  const off = ['retain', 'acme', 'off', '--service', 'slack']
  assert.deepEqual(await run(...off), [
    'The retention of acme is slack off.',
    'Due now: 0 threads, the oldest of -.',
  ])
  await run('retain', 'beta', '9999d')
  await assert.rejects(run('delete', 'acme', '--yes'), /Redis is asked/)
  const [, acme, beta] = await run('list')
  assert.deepEqual([acme?.split(/ {2,}/).at(-1), beta?.split(/ {2,}/).at(-1)], ['-', '9999d'])
})
