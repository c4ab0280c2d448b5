import { connectPeer } from './connect-peer.ts'
import { documentsOf } from './documents.ts'
import { peerEnv } from './peer-env.ts'
import { servePeer } from './serve-peer.ts'
import { storeByBulkWrite } from './store-thread.ts'

// No queue: the caller waits for one bulkWrite.
const { mongodbUrl, key, port } = peerEnv()
const storeThread = storeByBulkWrite(connectPeer(mongodbUrl, 50))
servePeer({
  port,
  key,
  async store(thread) {
    const documents = documentsOf(thread)
    await storeThread(documents)
    return documents
  },
})
