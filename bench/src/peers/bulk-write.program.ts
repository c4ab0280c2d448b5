import { serveWithoutQueue } from './serve-without-queue.ts'
import { storeByBulkWrite } from './store-thread.ts'

// The caller waits for one bulkWrite.
serveWithoutQueue(storeByBulkWrite, 50)
