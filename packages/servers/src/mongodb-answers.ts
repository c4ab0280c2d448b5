import { type Db, MongoClient } from 'mongodb'

/** Connects to a MongoDB for one question to its `admin` database. Throws where it does not answer within `patienceMs` milliseconds. */
export async function askMongodb<T>(url: string, question: (admin: Db) => Promise<T>, patienceMs = 300): Promise<T> {
  const client = new MongoClient(url, { serverSelectionTimeoutMS: patienceMs, connectTimeoutMS: patienceMs })
  try {
    await client.connect()
    return await question(client.db('admin'))
  } finally {
    await client.close()
  }
}

/** Whether a MongoDB at this URL answers within `patienceMs` milliseconds. */
export async function mongodbAnswers(url: string, patienceMs?: number): Promise<boolean> {
  try {
    await askMongodb(url, (admin) => admin.command({ ping: 1 }), patienceMs)
    return true
  } catch {
    return false
  }
}
