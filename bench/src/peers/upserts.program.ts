import { serveWithoutQueue } from './serve-without-queue.ts'
import { storeByUpserts } from './store-thread.ts'

// The caller waits for an upsert a document.
serveWithoutQueue(storeByUpserts, 20)
