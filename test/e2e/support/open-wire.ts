import { once } from 'node:events'
import { connect, type Socket } from 'node:net'

/** A connection on which every byte is the test's own. */
export interface Wire {
  socket: Socket
  /** Resolves when the system has taken all of it. */
  write(data: string | Uint8Array): Promise<void>
  /** What has come once it matches; rejects where the connection ends without. */
  until(pattern: RegExp): Promise<string>
}

/** Connects to an API. Nothing that comes is read before `until` is called: what a client does that sends everything first. */
export async function openWire(url: string): Promise<Wire> {
  const { hostname, port } = new URL(url)
  const socket = connect(Number(port), hostname).setEncoding('utf8').pause()
  await once(socket, 'connect')
  socket.on('error', () => {}) // whoever writes or waits is told
  let seen = ''
  return {
    socket,
    write: (data) =>
      new Promise((resolve, reject) => socket.write(data, (error) => (error ? reject(error) : resolve()))),
    until(pattern) {
      const { promise, resolve, reject } = Promise.withResolvers<string>()
      const look = (text: string) => {
        seen += text
        if (pattern.test(seen)) resolve(seen)
      }
      const fail = (error?: Error) => reject(new Error(`ended without ${pattern}: ${seen}`, { cause: error }))
      socket.on('data', look).once('close', fail).once('error', fail).resume()
      look('')
      return promise.finally(() => socket.off('data', look).off('close', fail).off('error', fail))
    },
  }
}

type Headers = Record<string, string | number>

/** The head of a `POST /sources`; a header given as '' is left out. */
export function postHead(headers: Headers): string {
  return headOf('/sources', headers)
}

/** The head of a `POST /sources:batch`. */
export function batchHead(headers: Headers): string {
  return headOf('/sources:batch', headers)
}

/** One chunk of a body of no announced length; of ASCII. */
export function chunk(text: string): string {
  return `${text.length.toString(16)}\r\n${text}\r\n`
}

function headOf(path: string, headers: Headers): string {
  const given = { host: 'test', 'content-type': 'application/json', ...headers }
  const lines = Object.entries(given).flatMap(([name, value]) => (value === '' ? [] : [`${name}: ${value}`]))
  return [`POST ${path} HTTP/1.1`, ...lines, '', ''].join('\r\n')
}
