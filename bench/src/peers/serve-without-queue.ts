import { connectPeer } from './connect-peer.ts'
import { documentsOf } from './documents.ts'
import { peerEnv } from './peer-env.ts'
import { servePeer } from './serve-peer.ts'
import type { storeByUpserts } from './store-thread.ts'

/**
 * Serves a peer without a queue: the caller waits for the writes. `connections` are those to
 * MongoDB.
 */
export function serveWithoutQueue(storeBy: typeof storeByUpserts, connections: number): void {
  const { mongodbUrl, key, port } = peerEnv()
  const storeThread = storeBy(connectPeer(mongodbUrl, connections))
  servePeer({
    port,
    key,
    async store(thread) {
      const documents = documentsOf(thread)
      await storeThread(documents)
      return documents
    },
  })
}
