// MongoDB's user lacks a right, such as in a role that an operator wrote by hand.
import assert from 'node:assert/strict'
import { createKey } from '@sluice/credentials/keys'
import { requiredUrl } from '@sluice/test-support'
import { describe, test } from 'vitest'
import { statusesOf } from '../support/ledger.ts'
import { openOperator } from '../support/open-operator.ts'
import { aThread, deleteThread, type Posted, postThread } from '../support/post-thread.ts'
import { startSluice, untilKeyIsKnown } from '../support/start-sluice.ts'
import { openTcpProxy } from '../support/tcp-proxy.ts'
import { failCommands } from './foreign-engine.ts'

/** A user without this right is refused commands of this kind on this collection. */
interface Right {
  command: string
  collection: string
}

/** Fails commands as MongoDB does if its user lacks a right, while one is lacking. */
function refuse(lacking: () => Right | undefined) {
  return failCommands((sent) => {
    const right = lacking()
    if (right === undefined || sent[right.command] !== right.collection) return undefined
    const errmsg = `not authorized on sluice to execute command { ${right.command}: "${right.collection}" }`
    return { code: 13, errmsg, takesEffect: () => false }
  })
}

const POSTS = 10

describe.concurrent('a worker whose user may not', () => {
  for (const right of [
    { command: 'delete', collection: 'quotes' },
    { command: 'update', collection: 'deletions' },
  ])
    test(`${right.command} ${right.collection} stores other tenants' posts, and deletes by a retry later`, async (t) => {
      let lacking: Right | undefined
      const proxy = await openTcpProxy(
        t,
        requiredUrl('MONGODB_URL'),
        refuse(() => lacking),
      )
      const sluice = await startSluice(t, { workers: 0 })
      const mongodbUrl = new URL(proxy.url)
      mongodbUrl.pathname = `/${sluice.db.databaseName}`
      const worker = await sluice.startWorker({ MONGODB_URL: mongodbUrl.href })
      const { key } = await createKey(sluice.db, { tenant: 'other', name: 'other' })
      await untilKeyIsKnown(sluice.url, key)
      const { externalId, status } = await postThread(sluice, aThread())
      assert.equal(status, 200)

      lacking = right
      const deleting = deleteThread(sluice, externalId, 'wait=60')
      const attempted = await worker.line(
        ({ msg }) => msg === 'job.try_failed' || msg === 'job.put_back',
      )
      assert.match(String(attempted.reason), /not authorized/)
      const posted: Posted[] = []
      for (let post = 0; post < POSTS; post++)
        posted.push(await postThread({ url: sluice.url, key }, aThread(), 'wait=2'))
      assert.deepEqual(statusesOf(posted), [200])
      assert.equal((await deleting).status, 500)
      assert(!worker.log.some(({ msg }) => msg === 'store.lost'))

      lacking = undefined
      const operator = await openOperator(sluice)
      const headers = { 'x-api-key': operator.key, 'content-type': 'application/json' }
      const body = JSON.stringify({ filter: {} })
      const url = `${sluice.url}/admin/jobs:retry`
      assert.equal((await fetch(url, { method: 'POST', headers, body })).status, 202)
      await worker.line(({ msg, outcome }) => msg === 'job.stored' && outcome === 'deleted')
      assert.equal(await sluice.db.collection('quotes').countDocuments(), POSTS * 3)
    })
})
