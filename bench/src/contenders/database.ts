import { MongoClient } from 'mongodb'
import type { Bench } from '../bench.ts'

/** The URL of another database on the same server; the authentication database stays the same. */
export function databaseUrl(url: string, name: string): string {
  const [, server = '', path = '', query = ''] =
    /^([a-z+]+:\/\/[^/?]+)\/?([^?]*)\??(.*)$/.exec(url) ?? []
  const options = new URLSearchParams(query)
  if (server.includes('@') && !options.has('authSource')) options.set('authSource', path || 'admin')
  return `${server}/${name}?${options}`
}

/** Drops a database of the benchmark, unless it ends with the run. */
export async function dropDatabase(
  { isMongodbOwn }: Pick<Bench, 'isMongodbOwn'>,
  url: string,
): Promise<void> {
  if (isMongodbOwn) return
  const client = new MongoClient(url)
  await client.db().dropDatabase()
  await client.close()
}
