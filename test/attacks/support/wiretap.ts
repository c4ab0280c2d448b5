// Records every byte between Sluice and one of its servers.
import type { TestScope } from '@sluice/test-support'
import { openTcpProxy } from '../../support/tcp-proxy.ts'

/** A server's URL that leads through a recording proxy. */
export interface Wiretap {
  url: string
  /** What each connection carried, in each direction. */
  recorded(): string[]
}

/** Puts a recording proxy before the server of this URL. */
export async function openWiretap(t: TestScope, serverUrl: string): Promise<Wiretap> {
  const streams: Buffer[][] = []
  const tap = () => {
    const stream: Buffer[] = []
    streams.push(stream)
    return (chunk: Buffer) => {
      stream.push(chunk)
      return chunk
    }
  }
  const { url } = await openTcpProxy(t, serverUrl, () => ({ toServer: tap(), toClient: tap() }))
  return { url, recorded: () => streams.map((stream) => Buffer.concat(stream).toString('latin1')) }
}
