import { randomBytes } from 'node:crypto'
import type { TestContext } from 'node:test'
import { type Db, MongoClient } from 'mongodb'
import { requiredUrl } from './required-url.ts'

/** A database of the test's own, named after it; dropped when the test passed, kept as evidence when it failed. */
export async function testDatabase(t: TestContext, url = requiredUrl('MONGODB_URL')): Promise<Db> {
  const client = await new MongoClient(url).connect()
  const name = `${t.name.replaceAll(/[^a-z0-9]+/gi, '_').slice(0, 40)}_${randomBytes(4).toString('hex')}`
  const db = client.db(name)
  t.after(async () => {
    if ('passed' in t && t.passed === true) await db.dropDatabase()
    await client.close()
  })
  return db
}
