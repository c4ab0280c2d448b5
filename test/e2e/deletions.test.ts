import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { runCommand } from '@sluice/cli/test-support'
import { createClient } from '@sluice/client'
import {
  type DeletionAnswer,
  DeletionAnswerSchema,
  type FindAnswer,
  type Outcome,
} from '@sluice/contract'
import { createKey } from '@sluice/credentials/keys'
import { beforeSuite } from '@sluice/test-support'
import { Ajv } from 'ajv'
import { describe, test } from 'vitest'
import { openOperator } from '../support/open-operator.ts'
import { startSluice, type TestSluice } from '../support/start-sluice.ts'
import { until } from '../support/until.ts'
import { type Caller, createCaller, type Reply } from './support/caller.ts'
import { jobIn, jobPathIn, problemIn, sourcePageIn, storedIn } from './support/read-reply.ts'
import { someThread } from './support/some-thread.ts'

const isDeletion = new Ajv().compile<DeletionAnswer>(DeletionAnswerSchema)

function deletedIn(reply: Reply): DeletionAnswer {
  const body: unknown = JSON.parse(reply.text)
  assert.ok(reply.status === 200 && isDeletion(body), `${reply.status} ${reply.text}`)
  return body
}

const QUOTES = [
  { externalId: 'a', text: 'one two' },
  { externalId: 'b', text: 'three', replyingTo: 'a' },
]
const aThread = () => someThread({ quotes: QUOTES })
const nameOf = ({ service, externalId }: Record<string, unknown>) => ({ service, externalId })
const pathOf = ({ service, externalId }: Record<string, unknown>) =>
  `/sources?${new URLSearchParams({ service: String(service), externalId: String(externalId) })}`
const lines = (items: readonly unknown[]) =>
  items.map((item) => `${JSON.stringify(item)}\n`).join('')

describe('deletions', () => {
  let sluice: TestSluice
  let caller: Caller
  let operator: Caller
  const deletion = { method: 'DELETE' }
  const remove = (path: string, headers = {}, by = caller) =>
    by.send(path, { ...deletion, headers })
  const removeMany = (items: readonly unknown[], by = caller, query = '') =>
    by.send(`/sources:delete${query}`, {
      method: 'POST',
      headers: { 'content-type': 'application/x-ndjson' },
      body: lines(items),
    })
  beforeSuite(async (t) => {
    sluice = await startSluice(t)
    caller = createCaller(sluice)
    operator = createCaller({ url: sluice.url, key: (await openOperator(sluice)).key })
  })
  const callerOf = async (details: Parameters<typeof createKey>[1]) =>
    createCaller({ url: sluice.url, key: (await createKey(sluice.db, details)).key })

  test('a thread is gone after its deletion, by its name or its id, and a second one finds nothing', async () => {
    for (const named of [true, false]) {
      const thread = aThread()
      const { id } = storedIn(await caller.post(thread)).source
      const path = named ? pathOf(thread) : `/sources/${id}`
      assert.deepEqual(deletedIn(await remove(path)), { id, outcome: 'deleted', quotes: 2 })
      problemIn(await caller.get(path), 404, 'source_unknown')
      assert.equal(await sluice.db.collection('quotes').countDocuments({ sourceId: id }), 0)
      assert.deepEqual(deletedIn(await remove(path)), { id, outcome: 'absent', quotes: 0 })
    }
  })

  test('a question mark in a name is no end of it, and bytes that are no UTF-8 are refused', async () => {
    const [{ externalId: address }, service] = [aThread(), 'custom']
    const [page, item] = [`${address}`, `${address}?id=1&b`]
    for (const externalId of [page, item])
      storedIn(await caller.post({ ...aThread(), service, externalId }))
    const { id } = sourcePageIn(await caller.get(pathOf({ service, externalId: item }))).source
    for (const bytes of ['%FF', '%C3', '%ED%A0%80']) {
      const answer = await remove(`/sources?service=${service}&externalId=${page}${bytes}`)
      assert.equal(problemIn(answer, 400, 'request_invalid').errors?.[0]?.pointer, '/externalId')
    }
    const path = `/sources?service=${service}&externalId=${page}?id=1%26b`
    assert.deepEqual(deletedIn(await remove(path)), { id, outcome: 'deleted', quotes: 2 })
  })

  test('a thread that is posted after its deletion is new, with exact totals', async () => {
    const thread = aThread()
    storedIn(
      await caller.post({ ...thread, description: 'old', quotes: [...QUOTES, { text: 'x' }] }),
    )
    deletedIn(await remove(pathOf(thread)))
    const { source, quotes } = storedIn(await caller.post(thread))
    const outcomes = [source, ...quotes].map(({ outcome }) => outcome)
    assert.deepEqual(outcomes, ['created', 'created', 'created'] satisfies Outcome[])
    assert.deepEqual([source.description, source.wordCount], [null, 3])
    assert.equal(sourcePageIn(await caller.get(pathOf(thread))).quotes.length, 2)
  })

  test('a post that still waits when its thread is deleted changes nothing, and its job says so', async () => {
    const thread = aThread()
    const resume = '/admin/lanes/bulk:resume?why=test'
    await operator.send('/admin/lanes/bulk:pause?why=test', { method: 'POST' })
    const job = jobPathIn(await caller.post(thread, { prefer: 'respond-async' }))
    assert.equal(deletedIn(await remove(pathOf(thread))).outcome, 'absent')
    await operator.send(resume, { method: 'POST' })
    const { state, result } = jobIn(await caller.get(job, { prefer: 'wait=10' }))
    const seen = [state, result?.source.outcome, result?.quotes]
    assert.deepEqual(seen, ['completed', 'deleted', []])
    problemIn(await caller.get(pathOf(thread)), 404, 'source_unknown')
    assert.equal(storedIn(await caller.post(thread)).source.outcome, 'created')
  })

  test('a message is deleted by its id or its externalId, and is new when it is posted again', async () => {
    const thread = aThread()
    const { source, quotes } = storedIn(await caller.post(thread))
    const path = `/sources/${source.id}/quotes`
    const one = { id: source.id, outcome: 'deleted', quotes: 1 }
    assert.deepEqual(deletedIn(await remove(`${path}?externalId=a`)), one)
    const { source: left, quotes: replies } = sourcePageIn(await caller.get(pathOf(thread)))
    assert.deepEqual([left.wordCount, replies.map(({ replyingTo }) => replyingTo)], [1, ['a']])
    assert.equal(deletedIn(await remove(`${path}/${quotes[0]?.id}`)).outcome, 'absent')
    assert.deepEqual(deletedIn(await remove(`${path}/${quotes[1]?.id}`)), one)
    const again = storedIn(await caller.post(thread))
    assert.deepEqual(
      [again.source.wordCount, ...again.quotes.map(({ outcome }) => outcome)],
      [3, 'created', 'created'],
    )
  })

  test('a caller that does not wait gets a job, whose result is the deletion', async () => {
    const thread = aThread()
    const { id } = storedIn(await caller.post(thread)).source
    const reply = await remove(pathOf(thread), { prefer: 'respond-async' })
    assert.deepEqual([reply.status, JSON.parse(reply.text)], [202, { id }])
    const { state, result, deletion } = jobIn(
      await caller.get(jobPathIn(reply), { prefer: 'wait=10' }),
    )
    assert.deepEqual([state, result], ['completed', undefined])
    assert.deepEqual(deletion, { id, outcome: 'deleted', quotes: 2 })
    const { hits }: FindAnswer = JSON.parse(
      (await operator.get(`/admin/find?q=${encodeURIComponent(String(thread.externalId))}`)).text,
    )
    const outcomes = hits.flatMap((hit) => (hit.outcomes?.deleted ? [hit.name] : []))
    assert.deepEqual(outcomes, [`${thread.service}/${thread.externalId}`])
  })

  test('a repeated Idempotency-Key deletes nothing that was posted in between', async () => {
    const thread = aThread()
    storedIn(await caller.post(thread))
    const key = { 'idempotency-key': 'delete-once' }
    const first = await remove(pathOf(thread), key)
    storedIn(await caller.post(thread))
    assert.equal((await remove(pathOf(thread), key)).text, first.text)
    assert.equal(sourcePageIn(await caller.get(pathOf(thread))).quotes.length, 2)
    problemIn(await remove(pathOf(aThread()), key), 422, 'idempotency_key_reused')
  })

  test('only keys with the right may delete, each in its own tenant, and operators name one', async () => {
    const thread = aThread()
    const { id } = storedIn(await caller.post(thread)).source
    const keys = {
      posts: await callerOf({ tenant: 'acme', name: 'only posts' }),
      viewer: await callerOf({ role: 'viewer', name: 'looks' }),
    }
    const paths = [
      pathOf(thread),
      `/sources/${id}`,
      `/sources/${id}/quotes?externalId=a`,
      `/sources/${id}/quotes/${id}${id}`,
    ]
    for (const by of Object.values(keys)) {
      for (const path of paths) problemIn(await remove(path, {}, by), 403, 'deletes_forbidden')
      problemIn(await removeMany([thread], by), 403, 'deletes_forbidden')
    }
    const other = await callerOf({ tenant: 'globex', name: 'deletes', deletes: true })
    const absent = { id, outcome: 'absent', quotes: 0 }
    assert.deepEqual(deletedIn(await remove(`/sources/${id}`, {}, other)), absent)
    assert.equal(deletedIn(await remove(pathOf(thread), {}, other)).outcome, 'absent')
    problemIn(await remove(`/sources/${id}?tenant=acme`, {}, other), 400, 'request_invalid')
    for (const path of [`/sources/${id}`, `/sources/${id}/quotes/${id}${id}`])
      problemIn(await remove(path, {}, operator), 400, 'request_invalid')
    problemIn(await removeMany([{ id }], operator), 400, 'request_invalid')
    assert.deepEqual(deletedIn(await remove(`/sources/${id}?tenant=globex`, {}, operator)), absent)
    assert.equal(sourcePageIn(await caller.get(pathOf(thread))).quotes.length, 2)
    assert.equal(deletedIn(await remove(`/sources/${id}?tenant=acme`, {}, operator)).quotes, 2)
  })

  test('an id that nothing can have is refused', async () => {
    const { id } = storedIn(await caller.post(aThread())).source
    for (const path of ['/sources/x', '/sources/x/quotes?externalId=a', `/sources/${id}/quotes/x`])
      problemIn(await remove(path), 404, 'source_unknown')
  })

  test('many threads are deleted, each on its own, with a result for each item', async () => {
    const threads = [aThread(), aThread(), aThread()]
    const [first, second, third] = await Promise.all(
      threads.map(async (thread) => storedIn(await caller.post(thread)).source),
    )
    const nameOf = ({ service, externalId }: Record<string, unknown>) => ({ service, externalId })
    const items = [
      first && nameOf(first),
      { id: second?.id },
      { id: 'x' },
      { id: second?.id, quoteIds: [] },
    ]
    const reply = await removeMany(items)
    const [one, two, three, four, end] = reply.text
      .split('\n')
      .map((line) => line && JSON.parse(line))
    assert.deepEqual(one, { index: 0, status: 200, id: first?.id, outcome: 'deleted', quotes: 2 })
    assert.deepEqual(two, { index: 1, status: 200, id: second?.id, outcome: 'deleted', quotes: 2 })
    assert.deepEqual([three.status, three.problem.errors[0].pointer], [400, '/id'])
    assert.deepEqual([four.status, four.problem.errors[0].pointer], [400, '/quoteIds'])
    assert.deepEqual(end.summary, { received: 4, deleted: 2, absent: 0, failed: 2 })
    const array = await operator.send('/sources:delete?tenant=acme', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: [{ id: third?.id }, { id: first?.id }],
    })
    assert.deepEqual(JSON.parse(array.text).summary, {
      received: 2,
      deleted: 1,
      absent: 1,
      failed: 0,
    })
    assert.equal(await sluice.db.collection('quotes').countDocuments({ sourceId: third?.id }), 0)
  })

  test('the command deletes a thread, or those of a file after its interrupted run, and asks first', async (t) => {
    const threads = [aThread(), aThread(), aThread()]
    for (const thread of threads) storedIn(await caller.post(thread))
    const deps = { folder: tmpdir(), env: { SLUICE_API_KEY: sluice.key } }
    const run = (...args: string[]) => runCommand(deps, 'delete', [...args, '--url', sluice.url])
    const [first, second, third] = threads.map(nameOf)
    const one = [String(first?.service), String(first?.externalId)]
    assert.match((await run(...one)).stderr, /^error: Nothing was deleted\. Add --yes/)
    assert.equal(
      (await run(...one, '--yes')).stdout,
      '1 thread deleted with 2 messages, 0 not stored.\n',
    )
    const file = join(await mkdtemp(join(tmpdir(), 'sluice-delete-')), 'threads.ndjson')
    t.onTestFinished(() => rm(dirname(file), { recursive: true }))
    await writeFile(file, lines([second, first, third]))
    const rest = await run('--from', file, '--skip', '1', '--yes')
    assert.equal(rest.stdout, '1 thread deleted with 2 messages, 1 not stored.\n')
    assert.equal(sourcePageIn(await caller.get(pathOf(second ?? {}))).quotes.length, 2)
    await writeFile(file, lines([second, { ...second, title: 'x' }]))
    assert.match((await run('slack', '--from', file, '--yes')).stderr, /^error: Give either a/)
    const refusal = async () => (await run('--from', file, '--yes')).stderr
    assert.match(await refusal(), /^error: Line 2: title .*Nothing was deleted\.$/m)
    const named = JSON.stringify({ service: 'slack', externalId: 'no\u2028 such' })
    await writeFile(file, `${named}\n`)
    assert.match((await run('--from', file, '--yes')).stdout, /^0 threads .*, 1 not stored\.$/m)
    await writeFile(file, Buffer.from(named.replace('\u2028', '\xff'), 'latin1'))
    assert.match(await refusal(), /^error: Line 1: .*UTF-8.*Nothing was deleted\.$/m)
    await writeFile(file, '1')
    assert.match(await refusal(), /^error: Line 1: The body must be of type object\. Nothing/)
    await rm(file)
    assert.match(await refusal(), /^error: \/.*: it does not exist$/m)

    await operator.send('/admin/lanes/bulk:pause', { method: 'POST' })
    await writeFile(file, lines([second, first]))
    const listeners = process.listenerCount('SIGINT')
    const waiting = run('--from', file, '--yes')
    await until('it deletes', () => process.listenerCount('SIGINT') > listeners)
    process.emit('SIGINT')
    assert.match((await waiting).stderr, /^error: .* interrupted\. To go on, add --skip 0\.$/m)
    await operator.send('/admin/lanes/bulk:resume', { method: 'POST' })
  })

  test('the command says that a retry may not count what was deleted', async (t) => {
    const threads = [aThread(), aThread()]
    for (const thread of threads) storedIn(await caller.post(thread))
    let isLost = false
    const proxy = createServer(async ({ url = '', method }, response) => {
      const { status, text } =
        method === 'POST' ? await removeMany(threads.map(nameOf)) : await caller.get(url)
      if (method === 'POST' && !isLost) response.destroy()
      else response.writeHead(status).end(text)
      isLost ||= method === 'POST'
    }).listen(0, '127.0.0.1')
    t.onTestFinished(() => void proxy.close())
    await once(proxy, 'listening')
    const url = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`
    const deps = { folder: tmpdir(), env: { SLUICE_API_KEY: sluice.key } }
    const file = join(await mkdtemp(join(tmpdir(), 'sluice-delete-')), 'threads.ndjson')
    t.onTestFinished(() => rm(dirname(file), { recursive: true }))
    await writeFile(file, lines(threads.map(nameOf)))
    const run = await runCommand(deps, 'delete', ['--from', file, '--yes', '--url', url])
    // On a busy machine, a line of progress is between.
    assert.match(
      run.stdout,
      /Trying again in .*\n(1 of 2 threads\n)?0 threads deleted .* 2 not stored, or deleted before a retry\.\n$/,
    )
  })

  test('the client deletes one thread, and many', async () => {
    const client = createClient({ url: sluice.url, apiKey: sluice.key })
    const threads = [aThread(), aThread()]
    const ids = await Promise.all(
      threads.map(async (thread) => storedIn(await caller.post(thread)).source.id),
    )
    const [first = '', second = ''] = ids
    assert.equal((await client.deleteSource(first)).outcome, 'deleted')
    const many: unknown[] = []
    for await (const one of client.deleteSources([first, second]))
      many.push('outcome' in one ? [one.index, one.outcome] : one)
    assert.deepEqual(many, [
      [0, 'absent'],
      [1, 'deleted'],
    ])
  })
})
