import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { tmpdir } from 'node:os'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { runCommand } from '@sluice/cli/test-support'
import type { FindAnswer, FindQuery, Hit } from '@sluice/contract'
import { createKey } from '@sluice/credentials/keys'
import { quoteIdsOf, sourceIdOf } from '@sluice/store/ids'
import { beforeSuite } from '@sluice/test-support'
import { beforeAll, describe, test } from 'vitest'
import { scale } from '../support/scale.ts'
import { startSluice, type TestSluice } from '../support/start-sluice.ts'
import { type Caller, createCaller } from './support/caller.ts'
import { acceptedIn, problemIn, storedIn } from './support/read-reply.ts'
import { someThread } from './support/some-thread.ts'

const SLUICE = fileURLToPath(import.meta.resolve('../../sluice'))

let sluice: TestSluice
beforeSuite(async (t) => {
  sluice = await startSluice(t, { settings: { QUOTES_PER_SECOND: '1000000' } })
})

describe('an operator finds a thread', () => {
  let operatorKey: string
  let operator: Caller
  const quotes = [{ externalId: 'm-77', text: 'a' }]

  beforeAll(async () => {
    operatorKey = (await createKey(sluice.db, { role: 'operator', name: 'on call' })).key
    operator = createCaller({ url: sluice.url, key: operatorKey })
    const other = (await createKey(sluice.db, { role: 'importer', tenant: 'other', name: 'o' })).key
    for (const key of [sluice.key, other]) {
      const caller = createCaller({ url: sluice.url, key })
      storedIn(await caller.post(someThread({ externalId: 'C0123-1', quotes })))
    }
    const caller = createCaller(sluice)
    storedIn(await caller.post(someThread({ externalId: 'C0123-2', quotes: [] })))
  })

  const pathOf = (query: Record<string, string>) => `/admin/find?${new URLSearchParams(query)}`
  async function find(query: FindQuery): Promise<FindAnswer> {
    const { status, text } = await operator.get(pathOf(query))
    assert.equal(status, 200)
    return JSON.parse(text)
  }
  const stored = async (query: FindQuery) =>
    (await find(query)).hits.filter(({ state }) => state === 'stored')

  test('by its externalId, in every tenant, with the jobs that stored it', async () => {
    const { hits, ...found } = await find({ q: 'C0123-1' })
    assert.deepEqual(hits.map(({ tenant, state, kind }) => `${tenant} ${kind} ${state}`).sort(), [
      'acme job completed',
      'acme source stored',
      'other job completed',
      'other source stored',
    ])
    const [job, source] = ['job', 'source'].map((kind) =>
      hits.find((hit) => hit.kind === kind && hit.tenant === 'acme'),
    )
    assert.equal(source?.id, sourceIdOf('acme', { service: 'slack', externalId: 'C0123-1' }))
    assert.equal(source?.insertedBy, job?.id)
    assert.deepEqual(job?.outcomes, { created: 1, updated: 0, unchanged: 0 })
    assert.deepEqual(found, { more: false, notes: [] })
    assert.deepEqual(await find({ q: 'C0123-1', tenant: 'nobody' }), {
      hits: [],
      more: false,
      notes: [],
    })
  })

  test('by its id, by the id of a message, and by its job', async () => {
    const nameOf = ({ kind, name, quote }: Hit) => `${kind} ${name} ${quote}`
    const [source] = await stored({ q: 'C0123-2' })
    assert.deepEqual((await stored({ q: source?.id ?? '' })).map(nameOf), [
      'source slack/C0123-2 undefined',
    ])
    const [message = ''] = quoteIdsOf(
      sourceIdOf('acme', { service: 'slack', externalId: 'C0123-1' }),
      quotes,
    )
    assert.deepEqual((await stored({ q: message })).map(nameOf), ['quote slack/C0123-1 m-77'])
    assert.deepEqual(await stored({ q: message, tenant: 'other' }), [])
    const [job] = (await find({ q: source?.insertedBy ?? '' })).hits
    assert.deepEqual([job?.kind, job?.name], ['job', 'slack/C0123-2'])
  })

  test('in the terminal, and a mistake is answered with its field', async () => {
    const run = promisify(execFile)
    const args = ['find', 'C0123-2', '--url', sluice.url]
    const { stdout } = await run(SLUICE, args, {
      env: { ...process.env, SLUICE_API_KEY: operatorKey },
    })
    assert.match(
      stdout,
      /^completed +job .* slack\/C0123-2\n.*\nstored +source .* slack\/C0123-2\n.*inserted by [\w-]+\n/,
    )
    assert.match(stdout, /\n2 hits\.\n$/)
    const deps = { folder: tmpdir(), env: { SLUICE_API_KEY: operatorKey } }
    const tail = await runCommand(deps, 'tail', ['--no-follow', '--url', sluice.url])
    assert.match(
      tail.stdout,
      /^(\S+Z {2}completed {2}[\w-]{36} {2}(acme|other) {2}slack\/C0123-\d {2}created {2}\d+ ms\n){3}$/,
    )
    for (const [query, pointer] of [
      [{ q: '' }, '/q'],
      [{ q: 'a', state: 'stored' }, '/state'],
      [{ q: 'a', service: 'none' }, '/service'],
    ] as const) {
      const { errors } = problemIn(await operator.get(pathOf(query)), 400, 'request_invalid')
      assert.equal(errors?.[0]?.pointer, pointer)
    }
    problemIn(await createCaller(sluice).get(pathOf({ q: 'a' })), 403, 'operator_only')
  })

  test('by what has completed since', async () => {
    const list = async (query: string) =>
      JSON.parse((await operator.get(`/admin/recent${query}`)).text)
    const { jobs, next } = await list('')
    assert.deepEqual([jobs.length, (await list(`?after=${next}`)).jobs], [3, []])
    storedIn(await createCaller(sluice).post(someThread({ externalId: 'later', quotes: [] })))
    const later = await list(`?after=${next}`)
    assert.deepEqual(
      later.jobs.map(({ name }: Hit) => name),
      ['slack/later'],
    )
    problemIn(await operator.get('/admin/recent?after=x'), 400, 'request_invalid')
  })

  test('but neither by a beginning nor by a message', async () => {
    for (const q of ['m-77', 'C0123-', 'C0123-*']) assert.deepEqual((await find({ q })).hits, [], q)
  })
})

const WAITING = scale(200, 3_000)
const CALLERS = 32
/** Far above what a look-up among so many takes, also on a busy machine. */
const FOUND_MS = 10_000

test('one thread is found among all that wait', async () => {
  for (const worker of sluice.workers) worker.signal('SIGSTOP')
  const caller = createCaller(sluice)
  let next = 0
  const postSome = async () => {
    while (next < WAITING)
      acceptedIn(
        await caller.post(someThread({ externalId: `waiting-${next++}` }), {
          prefer: 'respond-async',
        }),
      )
  }
  await Promise.all(Array.from({ length: CALLERS }, postSome))
  const { key } = await createKey(sluice.db, { role: 'operator', name: 'on call later' })
  const operator = createCaller({ url: sluice.url, key })
  const name = `waiting-${WAITING >> 1}`
  const since = performance.now()
  const { hits }: FindAnswer = JSON.parse((await operator.get(`/admin/find?q=${name}`)).text)
  assert(performance.now() - since < FOUND_MS, `${performance.now() - since} ms`)
  assert.deepEqual(
    hits.map((hit) => [hit.state, hit.name]),
    [['waiting', `slack/${name}`]],
  )
})
