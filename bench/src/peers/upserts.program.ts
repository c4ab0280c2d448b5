import { serveWithoutQueue } from './serve-without-queue.ts'
import { storeByUpserts } from './store-thread.ts'

// The caller waits for one upsert per document.
serveWithoutQueue(storeByUpserts, 20)
