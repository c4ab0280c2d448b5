import { once } from 'node:events'
import { connect, type Socket } from 'node:net'

/** A connection on which the test sends every byte itself. */
export interface Wire {
  socket: Socket
  /** Resolves when the operating system has accepted all bytes. */
  write(data: string | Uint8Array): Promise<void>
  /** Resolves with the received text once it matches. Rejects if the connection ends before. */
  until(pattern: RegExp): Promise<string>
}

/**
 * Connects to an API. It reads nothing before `until` is called, as a client does that sends
 * everything first.
 */
export async function openWire(url: string): Promise<Wire> {
  const { hostname, port } = new URL(url)
  const socket = connect(Number(port), hostname).setEncoding('utf8').pause()
  await once(socket, 'connect')
  socket.on('error', () => {}) // writes and waits report it
  let seen = ''
  return {
    socket,
    write: (data) =>
      new Promise((resolve, reject) =>
        socket.write(data, (error) => (error ? reject(error) : resolve())),
      ),
    until(pattern) {
      const { promise, resolve, reject } = Promise.withResolvers<string>()
      const look = (text: string) => {
        seen += text
        if (pattern.test(seen)) resolve(seen)
      }
      const fail = (error?: Error) =>
        reject(new Error(`ended without ${pattern}: ${seen}`, { cause: error }))
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
export function importHead(headers: Headers): string {
  return headOf('/sources:batch', headers)
}

/** One chunk of a body without an announced length, in ASCII. */
export function chunk(text: string): string {
  return `${text.length.toString(16)}\r\n${text}\r\n`
}

function headOf(path: string, headers: Headers): string {
  const given = { host: 'test', 'content-type': 'application/json', ...headers }
  const lines = Object.entries(given).flatMap(([name, value]) =>
    value === '' ? [] : [`${name}: ${value}`],
  )
  return [`POST ${path} HTTP/1.1`, ...lines, '', ''].join('\r\n')
}
