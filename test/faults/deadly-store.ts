import type { StartedProcess, TestScope } from '@sluice/test-support'
import { openTcpProxy } from '../support/tcp-proxy.ts'

/** A proxy to MongoDB that lets a worker die as soon as it asks for a certain document. */
export interface DeadlyStore {
  /** For the workers' settings. */
  url: string
  /** Resolves when the process has died. Call it before the process can ask. */
  kills(worker: StartedProcess): Promise<void>
}

/** @param id of the document. Commands that name it do not reach MongoDB. */
export async function openDeadlyStore(
  t: TestScope,
  mongodbUrl: string,
  id: string,
): Promise<DeadlyStore> {
  let asked = Promise.withResolvers<void>()
  const { url } = await openTcpProxy(t, mongodbUrl, () => ({
    toServer(chunk) {
      if (!chunk.includes(id)) return chunk
      asked.resolve()
      return Buffer.alloc(0)
    },
    toClient: (chunk) => chunk,
  }))
  return {
    url,
    async kills(worker) {
      await asked.promise
      worker.signal('SIGKILL')
      await worker.ended
      asked = Promise.withResolvers()
    },
  }
}
