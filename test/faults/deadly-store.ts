import { freePort } from '@sluice/servers'
import type { StartedProcess } from '@sluice/test-support'
import { createTcpProxy, type TcpProxy } from './tcp-proxy.ts'

/** A proxy to MongoDB that lets a worker die as soon as it asks for a certain document. */
export interface DeadlyStore {
  /** For the workers' settings. */
  url: string
  /** Resolves when the process has died. Call it before the process can ask. */
  kills(worker: StartedProcess): Promise<void>
  end: TcpProxy['shut']
}

/** @param id of the document. Commands that name it do not reach MongoDB. */
export async function openDeadlyStore(mongodbUrl: string, id: string): Promise<DeadlyStore> {
  const port = await freePort()
  let asked = Promise.withResolvers<void>()
  const proxy = createTcpProxy(port, () => ({
    toServer(chunk) {
      if (!chunk.includes(id)) return chunk
      asked.resolve()
      return Buffer.alloc(0)
    },
    toClient: (chunk) => chunk,
  }))
  const url = new URL(mongodbUrl)
  await proxy.open(Number(url.port))
  url.port = String(port)
  return {
    url: url.href,
    async kills(worker) {
      await asked.promise
      worker.signal('SIGKILL')
      await worker.ended
      asked = Promise.withResolvers()
    },
    end: proxy.shut,
  }
}
