import { randomBytes } from 'node:crypto'
import { type Db, MongoClient } from 'mongodb'
import { requiredUrl } from './required-url.ts'
import type { TestScope } from './test-scope.ts'

/** A database of a test's or suite's own, named after it; dropped when the test passed, kept as evidence when it failed. */
export async function testDatabase(t: TestScope, url = requiredUrl('MONGODB_URL')): Promise<Db> {
  const client = await new MongoClient(url).connect()
  const name = `${t.task.name.replaceAll(/[^a-z0-9]+/gi, '_').slice(0, 40)}_${randomBytes(4).toString('hex')}`
  const db = client.db(name)
  t.onTestFinished(async () => {
    if (t.task.result?.state === 'pass') await db.dropDatabase()
    await client.close()
  })
  return db
}
