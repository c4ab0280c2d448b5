import { type Db, MongoClient } from 'mongodb'

/**
 * The database that the URL names, over at most `connections` connections: each peer uses the best
 * of 10, 20, 50 and 100.
 */
export function connectPeer(url: string, maxPoolSize: number): Db {
  return new MongoClient(url, {
    maxPoolSize,
    ignoreUndefined: true,
    writeConcern: { w: 'majority' },
  }).db()
}
