// MongoDB's user lacks a right, such as in a role that an operator wrote by hand.
import assert from 'node:assert/strict'
import { createKey } from '@sluice/credentials/keys'
import { requiredUrl } from '@sluice/test-support'
import { describe, type TestContext, test } from 'vitest'
import { statusesOf } from '../support/ledger.ts'
import { openOperator } from '../support/open-operator.ts'
import { aThread, deleteThread, type Posted, postThread } from '../support/post-thread.ts'
import { prepareSluice, untilKeyIsKnown } from '../support/start-sluice.ts'
import { openTcpProxy } from '../support/tcp-proxy.ts'
import { BUSY_MS, until } from '../support/until.ts'
import { failCommands } from './foreign-engine.ts'

/** A user without this right is refused commands of this kind on this collection. */
interface Right {
  command: string
  collection: string
}

/** Prepares a Sluice, and a URL by which processes reach a MongoDB that refuses commands. */
async function prepare(t: TestContext) {
  let lacking: Right | undefined
  const gate = failCommands((sent) => {
    if (lacking === undefined || sent[lacking.command] !== lacking.collection) return undefined
    const { command, collection } = lacking
    const errmsg = `not authorized on sluice to execute command { ${command}: "${collection}", $db: "sluice" }`
    return { code: 13, errmsg, takesEffect: () => false }
  })
  const proxy = await openTcpProxy(t, requiredUrl('MONGODB_URL'), gate)
  const sluice = await prepareSluice(t)
  const url = new URL(proxy.url)
  url.pathname = `/${sluice.db.databaseName}`
  return {
    sluice,
    proxy,
    behindProxy: { MONGODB_URL: url.href },
    setLacking(right: Right | undefined) {
      lacking = right
    },
  }
}

const POSTS = 10

describe.concurrent('a worker whose user may not', () => {
  for (const right of [
    { command: 'delete', collection: 'quotes' },
    { command: 'update', collection: 'deletions' },
  ])
    test(`${right.command} ${right.collection} stores other tenants' posts, and deletes by a retry later`, async (t) => {
      const { sluice, behindProxy, setLacking } = await prepare(t)
      const [{ url }, worker] = await Promise.all([
        sluice.startApi(),
        sluice.startWorker(behindProxy),
      ])
      const target = { url, key: sluice.key }
      await untilKeyIsKnown(url, sluice.key)
      const { key } = await createKey(sluice.db, { tenant: 'other', name: 'other' })
      await untilKeyIsKnown(url, key)
      const { externalId, status } = await postThread(target, aThread())
      assert.equal(status, 200)

      setLacking(right)
      const deleting = deleteThread(target, externalId, 'wait=60')
      const attempted = await worker.line(
        ({ msg }) => msg === 'job.try_failed' || msg === 'job.put_back',
      )
      assert.match(String(attempted.reason), /not authorized/)
      const posted: Posted[] = []
      for (let post = 0; post < POSTS; post++)
        posted.push(await postThread({ url, key }, aThread(), 'wait=2'))
      assert.deepEqual(statusesOf(posted), [200])
      assert.equal((await deleting).status, 500)
      assert(!worker.log.some(({ msg }) => msg === 'store.lost'))

      setLacking(undefined)
      const operator = await openOperator({ db: sluice.db, url })
      const headers = { 'x-api-key': operator.key, 'content-type': 'application/json' }
      const body = JSON.stringify({ filter: {} })
      assert.equal(
        (await fetch(`${url}/admin/jobs:retry`, { method: 'POST', headers, body })).status,
        202,
      )
      await worker.line(({ msg, outcome }) => msg === 'job.stored' && outcome === 'deleted')
      assert.equal(await sluice.db.collection('quotes').countDocuments(), POSTS * 3)
    })
})

test('the verdict names the command that MongoDB refuses an API, and forgets it soon', async (t) => {
  const { sluice, behindProxy, setLacking } = await prepare(t)
  const [{ url }] = await Promise.all([sluice.startApi(behindProxy), sluice.startWorker()])
  const { readVerdict } = await openOperator({ db: sluice.db, url })
  setLacking({ command: 'find', collection: 'keys' })
  await fetch(`${url}/jobs/none`, { headers: { 'x-api-key': sluice.key } })
  const named =
    /^MongoDB refuses commands of the API .*: not authorized on sluice to execute command { find: "keys" …$/
  const isNamed = async () => (await readVerdict()).some((text) => named.test(text))
  await until('the verdict names it', isNamed, 15_000)
  setLacking({ command: 'update', collection: 'deletions' })
  const headers = { 'x-api-key': sluice.key, 'content-type': 'application/json' }
  const body = JSON.stringify({ speaker: 'nobody' })
  assert.equal((await fetch(`${url}/erasures`, { method: 'POST', headers, body })).status, 503)
  setLacking(undefined)
  await until('the verdict is silent', async () => !(await isNamed()), 15_000 + BUSY_MS)
})

test('the verdict and the log name a right that MongoDB lacks when it is back', async (t) => {
  const { sluice, proxy, behindProxy, setLacking } = await prepare(t)
  const [{ url }, worker] = await Promise.all([sluice.startApi(), sluice.startWorker(behindProxy)])
  const { readVerdict } = await openOperator({ db: sluice.db, url })
  await untilKeyIsKnown(url, sluice.key)
  const says = async (reason: string) =>
    (await readVerdict()).some((text) => /^MongoDB has been un/.test(text) && text.includes(reason))
  const isProbed = (why: string) =>
    worker.line(({ msg, reason }) => msg === 'store.probe_failed' && String(reason).includes(why))
  await proxy.shut()
  await postThread({ url, key: sluice.key }, aThread(), 'respond-async')
  await isProbed('ECONNREFUSED')
  await until('the verdict says so', () => says('ECONNREFUSED'))
  setLacking({ command: 'update', collection: 'writers' })
  await proxy.reopen()
  await isProbed('not authorized')
  await until('the verdict says so, too', () => says('update: "writers"'), 15_000)
  setLacking(undefined)
  await worker.line(({ msg }) => msg === 'job.stored')
  await until('the verdict is silent', async () => !(await says('')), 15_000 + BUSY_MS)
})
