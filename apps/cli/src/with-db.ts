// Opens the database for the work of a command, and closes it afterwards.
import type { Db } from 'mongodb'

export interface DbDeps {
  openDb: () => Promise<{ db: Db; close: () => Promise<void> }>
}

export async function withDb<T>({ openDb }: DbDeps, work: (db: Db) => Promise<T>): Promise<T> {
  const { db, close } = await openDb()
  return work(db).finally(close)
}
