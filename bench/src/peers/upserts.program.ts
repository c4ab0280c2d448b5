import { connectPeer } from './connect-peer.ts'
import { documentsOf } from './documents.ts'
import { peerEnv } from './peer-env.ts'
import { servePeer } from './serve-peer.ts'
import { storeByUpserts } from './store-thread.ts'

// No queue: the caller waits for an upsert a document.
const { mongodbUrl, key, port } = peerEnv()
const storeThread = storeByUpserts(connectPeer(mongodbUrl, 20))
servePeer({
  port,
  key,
  async store(thread) {
    const documents = documentsOf(thread)
    await storeThread(documents)
    return documents
  },
})
