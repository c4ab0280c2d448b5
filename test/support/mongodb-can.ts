// What the MongoDB of the tests can do: engines that speak its protocol differ. Each process asks
// once, on a database of its own, and tests of what the server can't do are skipped.
import { requiredUrl } from '@sluice/test-support'
import { type Db, MongoClient, MongoServerError } from 'mongodb'

const DOCUMENT_VALIDATION_FAILURE = 121

/** Why tests are skipped. */
const LACKS = {
  refuseByValidator: 'refuses no document by a validator',
  sortByIndex: 'explains no read in the order of an index',
}

export const mongodbCan = await ask()

async function ask() {
  const client = await new MongoClient(requiredUrl('MONGODB_URL')).connect()
  const db = client.db(`can_${process.pid}`)
  try {
    const can = {
      refuseByValidator: await refusesByValidator(db),
      sortByIndex: await sortsByIndex(db),
    }
    for (const what of ['refuseByValidator', 'sortByIndex'] as const)
      if (!can[what]) console.log(`MongoDB ${LACKS[what]}: tests of that are skipped`)
    return can
  } finally {
    await db.dropDatabase()
    await client.close()
  }
}

/** Whether a validator of a collection refuses documents. */
async function refusesByValidator(db: Db): Promise<boolean> {
  try {
    const validated = await db.createCollection('validated', {
      validator: { refused: { $ne: true } },
    })
    await validated.insertOne({ refused: true })
    return false
  } catch (error) {
    if (!(error instanceof MongoServerError)) throw error
    return error.code === DOCUMENT_VALIDATION_FAILURE
  }
}

/** Whether the server reads in the order of an index, and `explain` says so in MongoDB's words. */
async function sortsByIndex(db: Db): Promise<boolean> {
  const sorted = db.collection('sorted')
  await sorted.createIndex({ field: 1 })
  const first = sorted
    .find({ field: { $gte: 1 } })
    .sort({ field: -1 })
    .limit(2)
  const plan = JSON.stringify(await first.explain('queryPlanner'))
  return plan.includes('"IXSCAN"') && !plan.includes('"SORT"')
}
