import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { connectRetrying } from '@sluice/process/redis'
import { queueKeys } from '@sluice/queue'
import { keysWith } from '@sluice/queue/test-support'
import { sourceIdOf } from '@sluice/store/ids'
import { beforeSuite } from '@sluice/test-support'
import { type TestContext, test } from 'vitest'
import { mongodbCan } from '../support/mongodb-can.ts'
import { openOperator } from '../support/open-operator.ts'
import { startSluice, type TestSluice } from '../support/start-sluice.ts'
import { until } from '../support/until.ts'
import { type Caller, createCaller, type Reply } from './support/caller.ts'
import { acceptedIn, jobIn, jobPathIn, storedIn } from './support/read-reply.ts'
import { someThread } from './support/some-thread.ts'

const ASYNC = { prefer: 'respond-async' }
const JSON_BODY = { 'content-type': 'application/json' }

let sluice: TestSluice
let operator: Caller
beforeSuite(async (t) => {
  sluice = await startSluice(t)
  operator = createCaller({ url: sluice.url, key: (await openOperator(sluice)).key })
})

/** Functions that post threads with words and search for these words. */
function setUp(t: TestContext) {
  const caller = createCaller(sluice)
  const { QUEUE = '', REDIS_URL = '' } = sluice.settings
  const redis = connectRetrying({ redisUrl: REDIS_URL, queue: '' }, () => {})
  t.onTestFinished(() => redis.disconnect())
  const words: string[] = []
  const newWord = () => {
    const word = `w${randomUUID().slice(0, 8)}`
    words.push(word)
    return word
  }
  /** The names of the threads that were posted. */
  const names: { service: string; externalId: string }[] = []
  /** A thread whose every text is a word of its own. */
  function aThread(changes: object = {}) {
    const quotes = ['a', 'b'].map((externalId) => ({
      externalId,
      text: `${newWord()} text`,
      speaker: newWord(),
    }))
    const thread = someThread({ title: newWord(), description: newWord(), quotes, ...changes })
    const name = { service: String(thread.service), externalId: String(thread.externalId) }
    names.push(name)
    return { ...thread, ...name }
  }
  /** Where a word is still found: keys of Redis and collections of MongoDB. */
  async function remembered(): Promise<string[]> {
    const keys = await keysWith(redis, queueKeys(QUEUE), words)
    const collections = await sluice.db.listCollections().toArray()
    const found = collections.map(async ({ name }) => {
      const text = JSON.stringify(await sluice.db.collection(name).find().toArray())
      return words.some((word) => text.includes(word)) ? [name] : []
    })
    return [...keys, ...(await Promise.all(found)).flat()]
  }
  const post = (path: string, body?: unknown) =>
    operator.send(path, { method: 'POST', headers: JSON_BODY, body })
  const operate = async (path: string, body?: unknown) => {
    const { status, text } = await post(`/admin/${path}`, body)
    assert(status < 300, `${status} ${text}`)
  }
  const ended = async (reply: Reply) =>
    jobIn(await caller.get(jobPathIn(reply), { prefer: 'wait=30' }))
  return { caller, operate, redis, words, newWord, names, aThread, remembered, ended }
}

type World = ReturnType<typeof setUp>

/** Posts threads in every way that the API has, so that some wait, and others have ended. */
async function postAll({ caller, operate, newWord, aThread, ended }: World) {
  const refused = newWord()
  await sluice.db.createCollection('quotes', { validator: { speaker: { $ne: refused } } })
  const failing = () => aThread({ quotes: [{ externalId: 'a', text: 'x', speaker: refused }] })
  const [failed, retried] = await Promise.all([
    caller.post(failing(), ASYNC),
    caller.post(failing(), ASYNC),
  ])
  const claimed = aThread()
  storedIn(await caller.post(claimed))
  // The answer has what this request leaves out.
  const { service, externalId } = claimed
  const partly = {
    service,
    externalId,
    title: newWord(),
    quotes: [{ externalId: 'a', text: newWord() }],
  }
  storedIn(await caller.post(partly, { 'idempotency-key': 'once' }))
  const imports = [aThread(), aThread(), aThread()].map((one) => JSON.stringify(one))
  await caller.postImport(imports.slice(0, 2).join('\n'))
  const retained = await caller.post(aThread(), ASYNC)
  for (const one of [failed, retried, retained]) await ended(one)
  await operate('lanes/bulk:pause')
  await operate('jobs:retry', { ids: [jobPathIn(retried).replace('/jobs/', '')] })
  await until('the job is retried', async () => {
    return jobIn(await caller.get(jobPathIn(retried))).state === 'waiting'
  })
  const refusedFields = { title: newWord(), service: newWord(), createdAt: newWord() }
  const invalid = JSON.stringify({
    ...refusedFields,
    quotes: [{ text: newWord(), upVotes: newWord() }],
  })
  const imported = await caller.postImport([imports[2], invalid].join('\n'), ASYNC)
  const waiting = await caller.post(aThread(), ASYNC)
  return { failed, retried, retained, waiting, imported }
}

test('after a deletion, nothing has a word of the thread, in whatever way it was posted', async (t) => {
  t.skip(!mongodbCan.refuseByValidator)
  const world = setUp(t)
  const { caller, operate, names, words, remembered, ended } = world
  const posted = await postAll(world)
  const before = (await remembered()).join()
  for (const part of ['sources', 'quotes', 'retained:', 'claim:', 'replies:', 'results:', 'events'])
    assert.match(before, new RegExp(part))
  for (const { service, externalId } of names) {
    const query = new URLSearchParams({ service, externalId })
    const { status, text } = await caller.send(`/sources?${query}`, { method: 'DELETE' })
    assert.equal(status, 200, text)
  }
  assert.deepEqual(await remembered(), [])
  await operate('lanes/bulk:resume')
  for (const one of [posted.retained, posted.retried, posted.waiting]) {
    const { state, result } = await ended(one)
    assert.deepEqual([state, result?.source.outcome], ['completed', 'deleted'])
  }
  assert.equal((await ended(posted.failed)).state, 'failed')
  const { text } = await caller.get(posted.imported.headers.get('location') ?? '')
  assert.match(text, /"failed":1/)
  assert(!words.some((word) => text.includes(word)), text)
  assert.deepEqual(await remembered(), [])
})

test('the same for a thread whose caller has given up waiting, if only its id is known', async (t) => {
  const { caller, operate, names, aThread, remembered, ended } = setUp(t)
  await operate('lanes/interactive:pause')
  const pending = await caller.post(aThread(), { prefer: 'wait=1' })
  acceptedIn(pending)
  const [name = { service: '', externalId: '' }] = names
  const deleted = await caller.send('/sources:delete', {
    method: 'POST',
    headers: { 'content-type': 'application/x-ndjson' },
    body: JSON.stringify({ id: sourceIdOf('acme', name) }),
  })
  assert.match(deleted.text, /"outcome":"absent"/)
  assert.deepEqual(await remembered(), [])
  await operate('lanes/interactive:resume')
  assert.equal((await ended(pending)).result?.source.outcome, 'deleted')
  assert.deepEqual(await remembered(), [])
})
