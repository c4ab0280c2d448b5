import { randomBytes } from 'node:crypto'
import { type Db, MongoClient } from 'mongodb'
import { requiredUrl } from './required-url.ts'
import type { TestScope } from './test-scope.ts'

/**
 * A database of one test or suite, named after it. It is dropped if the test passed, and kept as
 * evidence if it failed.
 */
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
