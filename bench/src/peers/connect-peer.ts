import { type Db, MongoClient } from 'mongodb'

/** The database that the URL names, over so many connections at most: of 10, 20, 50 and 100 each peer takes those that served it best. */
export function connectPeer(url: string, maxPoolSize: number): Db {
  return new MongoClient(url, { maxPoolSize, ignoreUndefined: true, writeConcern: { w: 'majority' } }).db()
}
