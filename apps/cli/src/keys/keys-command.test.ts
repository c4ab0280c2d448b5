import assert from 'node:assert/strict'
import { listKeys } from '@sluice/credentials/keys'
import { messageForPeople } from '@sluice/terminal'
import { testDatabase } from '@sluice/test-support'
import { type Command, CommanderError } from 'commander'
import { type TestContext, test } from 'vitest'
import { keysCommand } from './keys-command.ts'

/**
 * Runs `sluice keys …` on a database of the test's own; returns its output, or throws its error.
 */
async function terminal(t: TestContext) {
  const db = await testDatabase(t)
  const state = { open: 0 }
  const openDb = async () => {
    state.open++
    return { db, close: async () => void state.open-- }
  }
  async function run(...args: string[]): Promise<string[]> {
    const lines: string[] = []
    const command = keysCommand({ openDb, print: (line) => void lines.push(line) })
    for (const each of [command, ...command.commands]) quiet(each)
    await command
      .parseAsync(args, { from: 'user' })
      .finally(() => assert.equal(state.open, 0, 'the database is closed'))
    return lines
  }
  return { db, run }
}

function quiet(command: Command): void {
  command.exitOverride().configureOutput({ writeErr: () => {} })
}

test('a new key is the last line, below all that was made', async (t) => {
  const { db, run } = await terminal(t)
  const lines = await run(
    'create',
    '--tenant',
    'acme',
    '--name',
    'importer',
    '--expires',
    '90d',
    '--quotes-per-second',
    '10',
  )
  const key = lines.at(-1) ?? ''
  assert.match(key, /^slc_[0-9A-Za-z]{36}$/)
  assert.equal(lines.join('\n').split(key).length, 2, 'the key is printed once')
  const [record] = await listKeys(db)
  assert.deepEqual([record?.tenant, record?.name], ['acme', 'importer'])
  assert.ok(
    record?.expiresAt && record.expiresAt.getTime() - record.createdAt.getTime() > 89 * 86_400_000,
  )
  assert.deepEqual(lines.slice(1, 7), [
    `  id       ${record.id.slice(0, 12)}`,
    '  name     importer',
    '  role     importer',
    '  tenant   acme',
    `  expires  ${record.expiresAt.toISOString()} (in 90d)`,
    '  limits   10 quotes a second and 600 at once',
  ])
})

test('a key without an end and without limits of its own says so', async (t) => {
  const { run } = await terminal(t)
  const lines = await run('create', '--tenant', 'acme')
  assert.deepEqual(lines.slice(5, 7), [
    '  expires  never',
    '  limits   as many quotes as all keys without limits of their own',
  ])
})

test('the unit of a default duration is shown in the help', () => {
  const command = keysCommand({ openDb: () => assert.fail('opened'), print: () => {} })
  const rotate = command.commands.find((one) => one.name() === 'rotate')
  assert.match(rotate?.helpInformation() ?? '', /\(default:\s+24h\)/)
})

test('the list shows each key by its id, with its state', async (t) => {
  const { run } = await terminal(t)
  await run('create', '--tenant', 'acme', '--name', 'importer')
  await run('rotate', 'importer', '--overlap', '1h')
  await run('create', '--tenant', 'acme', '--name', 'week', '--expires', '6d')
  await run('create', '--tenant', 'acme', '--name', 'year', '--expires', '8d')
  await run('create', '--tenant', 'globex')
  await run('revoke', 'default')
  const lines = await run('list')
  assert.deepEqual(lines.map((line) => line.split(/ {2,}/).slice(1, 5).join(' ')).sort(), [
    'ROLE TENANT NAME STATE',
    'importer acme importer live',
    'importer acme importer replaced',
    'importer acme week expires soon',
    'importer acme year live',
    'importer globex default revoked',
  ])
  assert.equal((await run('list', '--tenant', 'globex')).length, 2)
})

test('the list as JSON has whole ids and no key', async (t) => {
  const { db, run } = await terminal(t)
  const key = (await run('create', '--tenant', 'acme')).at(-1) ?? ''
  const json = (await run('list', '--json')).join('\n')
  assert.deepEqual(
    JSON.parse(json),
    JSON.parse(JSON.stringify((await listKeys(db)).map((one) => ({ ...one, state: 'live' })))),
  )
  assert.equal(json.includes(key.slice(4)), false)
})

test('an operator\u2019s key has no tenant, and is listed as one', async (t) => {
  const { run } = await terminal(t)
  const lines = await run('create', '--role', 'operator', '--name', 'on call')
  assert.match(lines.join('\n'), /name +on call\n +role +operator\n +tenant +none/)
  assert.match((await run('list'))[1] ?? '', /^[0-9a-f]{12} {2}operator {2}- +on call {2}live/)
})

test('a key that may delete is shown and listed as one', async (t) => {
  const { run } = await terminal(t)
  const lines = await run('create', '--tenant', 'acme', '--deletes')
  assert.match(lines.join('\n'), /role +importer, deletes\n/)
  assert.match((await run('list'))[1] ?? '', / {2}importer, deletes {2}acme {2}/)
})

test('limits are given with a key, changed and removed, and listed', async (t) => {
  const { db, run } = await terminal(t)
  await run('create', '--tenant', 'acme', '--quotes-per-second', '10', '--burst-quotes', '40')
  assert.match((await run('list'))[1] ?? '', / {2}10 +40 {2}/)
  const [line] = await run('limit', 'default', '--quotes-per-second', '20')
  assert.match(line ?? '', /may post 20 quotes a second and 1200 at once\.$/)
  assert.deepEqual((await listKeys(db))[0]?.limits, { quotesPerSecond: 20, burstQuotes: 1_200 })
  await run('limit', 'default', '--none')
  assert.equal((await listKeys(db))[0]?.limits, undefined)
})

test('rotation prints a new key, and until when the old one works', async (t) => {
  const { db, run } = await terminal(t)
  const old = (await run('create', '--tenant', 'acme', '--name', 'importer')).at(-1)
  const now = Date.now()
  const lines = await run('rotate', 'importer')
  const rotated = lines.at(-1)
  assert.match(rotated ?? '', /^slc_/)
  assert.notEqual(rotated, old)
  const replaced = (await listKeys(db)).find(({ replacedBy }) => replacedBy !== undefined)
  const left = (replaced?.expiresAt?.getTime() ?? 0) - now
  assert.ok(left >= 86_400_000 && left < 86_460_000)
  const end = replaced?.expiresAt?.toISOString()
  assert.equal(
    lines[0],
    `Key ${replaced?.id.slice(0, 12)} is replaced and works until ${end} (in 24h).`,
  )
})

test('rotation keeps the expiry, or gives another one', async (t) => {
  const { run } = await terminal(t)
  await run('create', '--tenant', 'acme', '--name', 'importer', '--expires', '2130-01-31')
  assert.ok(
    (await run('rotate', 'importer', '--overlap', '0s')).some((line) =>
      line.startsWith('  expires  2130-01-31T'),
    ),
  )
  const lines = await run('rotate', 'importer', '--overlap', '0s', '--expires', '2131-01-31')
  assert.ok(lines.some((line) => line.startsWith('  expires  2131-01-31T')))
})

test('a revoked key is named', async (t) => {
  const { db, run } = await terminal(t)
  await run('create', '--tenant', 'acme')
  const [record] = await listKeys(db)
  const id = record?.id.slice(0, 12) ?? ''
  assert.deepEqual(await run('revoke', id), [
    `Revoked the key ${id} of tenant acme, named default.`,
  ])
  assert.ok((await listKeys(db))[0]?.revokedAt)
})

test('a mistake of the operator is one line', async (t) => {
  const { run } = await terminal(t)
  await run('create', '--tenant', 'acme', '--name', 'importer')
  await run('create', '--tenant', 'globex', '--name', 'importer')
  for (const [args, message] of [
    [['create'], /The key of an importer needs a tenant/],
    [['create', '--tenant', ' '], /The tenant is blank/],
    [
      ['create', '--tenant', 'acme', '--name', 'importer'],
      /The tenant acme has a key named "importer" that works/,
    ],
    [
      ['create', '--role', 'operator', '--tenant', 'acme'],
      /concerned with all tenants, so the key has no tenant/,
    ],
    [['create', '--role', 'admin'], /Allowed choices are importer, operator, viewer/],
    [
      ['create', '--tenant', 'acme', '--burst-quotes', '5'],
      /--burst-quotes needs --quotes-per-second/,
    ],
    [['create', '--tenant', 'acme', '--quotes-per-second', '0'], /a whole number of at least 1/],
    [['limit', 'importer'], /either --quotes-per-second or --none/],
    [
      ['limit', 'importer', '--none', '--quotes-per-second', '5'],
      /either --quotes-per-second or --none/,
    ],
    [['create', '--tenant', 'acme', '--expires', 'tomorrow'], /Write a time from now/],
    [['create', '--tenant', 'acme', '--expires', '2001-01-01'], /expired already/],
    [['revoke', 'nothing'], /No live key has the name or id "nothing"/],
    [['revoke', 'importer'], /Several keys go by "importer".* acme .* globex /s],
    [['rotate', 'importer', '--overlap', '1y'], /a number and a unit/],
  ] as const) {
    await assert.rejects(run(...args), (error) => {
      // Commander has printed its own errors.
      const shown = error instanceof CommanderError ? error.message : messageForPeople(error)
      return message.test(shown ?? '')
    })
  }
})

test('a database that fails is no fault of the operator', async () => {
  const command = keysCommand({
    openDb: () => Promise.reject(new Error('unavailable')),
    print: () => assert.fail('printed'),
  })
  await assert.rejects(command.parseAsync(['list'], { from: 'user' }), { message: 'unavailable' })
})
