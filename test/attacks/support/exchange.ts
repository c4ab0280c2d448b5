// Sends raw bytes to an API and reads every answer until the connection closes.
import { once } from 'node:events'
import { connect } from 'node:net'

/** One answer as it came over the wire. */
export interface RawAnswer {
  status: number
  headers: Record<string, string>
  body: string
}

interface ExchangeOptions {
  /** Closes the sending side after the last byte. */
  halfClose?: boolean
}

/** A connection that is still open then fails its test: no attack may hold one for ever. */
const OPEN_MS = 20_000

/**
 * Sends all bytes at once. Resolves when the connection is closed, with what came before. Rejects
 * if it stays open.
 */
export async function exchange(
  url: string,
  bytes: string | Uint8Array,
  { halfClose = false }: ExchangeOptions = {},
): Promise<RawAnswer[]> {
  const { hostname, port } = new URL(url)
  const socket = connect(Number(port), hostname).setTimeout(OPEN_MS, () =>
    socket.destroy(new Error('still open')),
  )
  const chunks: Buffer[] = []
  let isLate = false
  socket.on('data', (chunk) => chunks.push(chunk))
  // A server that refuses may reset a caller that still sends. What it said before counts.
  socket.on('error', (error) => (isLate ||= error.message === 'still open'))
  if (halfClose) socket.end(bytes)
  else socket.write(bytes)
  await once(socket, 'close')
  const answers = answersIn(Buffer.concat(chunks).toString('latin1'))
  if (isLate) throw new Error(`still open after ${OPEN_MS} ms, with ${answers.length} answers`)
  return answers
}

/** Splits what a connection received into answers. An answer without a length takes the rest. */
function answersIn(text: string): RawAnswer[] {
  const answers: RawAnswer[] = []
  for (let rest = text; rest !== ''; ) {
    const end = rest.indexOf('\r\n\r\n')
    if (end === -1) throw new Error(`no head of an answer: ${rest.slice(0, 200)}`)
    const [first = '', ...lines] = rest.slice(0, end).split('\r\n')
    const headers = Object.fromEntries(lines.map(headerIn))
    const begin = end + 4
    const length = Number(headers['content-length'] ?? rest.length - begin)
    answers.push({
      status: Number(first.split(' ')[1]),
      headers,
      body: rest.slice(begin, begin + length),
    })
    rest = rest.slice(begin + length)
  }
  return answers
}

function headerIn(line: string): [string, string] {
  const colon = line.indexOf(':')
  return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()]
}
