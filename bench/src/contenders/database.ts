import { MongoClient } from 'mongodb'

/** The URL of another database on the same server. Where credentials were looked up in the one that the URL names, they still are. */
export function databaseUrl(url: string, name: string): string {
  const [, server = '', path = '', query = ''] = /^([a-z+]+:\/\/[^/?]+)\/?([^?]*)\??(.*)$/.exec(url) ?? []
  const options = new URLSearchParams(query)
  if (server.includes('@') && !options.has('authSource')) options.set('authSource', path || 'admin')
  return `${server}/${name}?${options}`
}

/** Forgets a database of the benchmark's. */
export async function dropDatabase(url: string): Promise<void> {
  const client = new MongoClient(url)
  await client.db().dropDatabase()
  await client.close()
}
