import { createServer } from 'node:http'
import type { ThreadRequest } from '@sluice/contract'
import express from 'express'
import { answerOf } from './answer.ts'
import { isThread } from './thread-check.ts'

export interface Peer {
  port: number
  key: string
  /** Resolves when the whole thread is stored. */
  store: (thread: ThreadRequest) => Promise<{ wordCount: number }>
}

/**
 * The HTTP edge that all peers share: a key, a parsed body, a check, and the answer once the thread
 * is stored.
 */
export function servePeer({ port, key, store }: Peer): void {
  const app = express().disable('x-powered-by').disable('etag')
  app.use((request, response, next) => {
    if (request.headers['x-api-key'] === key) next()
    else response.status(403).json({ error: 'The key is missing or unknown.' })
  })
  app.use(express.json({ limit: '10mb' }))
  app.post('/sources', async (request, response) => {
    const thread: unknown = request.body
    if (isThread(thread)) response.json(answerOf(thread, await store(thread)))
    else response.status(400).json({ errors: isThread.errors })
  })
  createServer({ keepAliveTimeout: 65_000 }, app).listen(
    { port, host: '127.0.0.1', backlog: 1_024 },
    tellReady,
  )
}

/** Notifies the parent process. */
export function tellReady(): void {
  process.send?.({ ready: true })
}
