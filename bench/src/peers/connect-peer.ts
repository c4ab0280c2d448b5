import { MongoClient } from 'mongodb'

/** The database that the URL names, with as many connections as one busy Node process can make use of. */
export function connectPeer(url: string) {
  const client = new MongoClient(url, { maxPoolSize: 50, ignoreUndefined: true, writeConcern: { w: 'majority' } })
  return client.db()
}
