// Checks the certificates of the servers to which doctor connects by TLS. Processes that keep their
// connections would not notice a renewed one.
import { subscribe } from 'node:diagnostics_channel'
import { TLSSocket } from 'node:tls'
import { check, type ServerCheck } from './check.ts'

/** Checks the certificate of each server to which this process connects from now on. */
export function watchCertificates(): ReadonlyMap<string, ServerCheck> {
  const checks = new Map<string, ServerCheck>()
  // Node.js publishes the socket of each client there.
  subscribe('net.client.socket', (message) => {
    const { socket } = Object(message)
    if (!(socket instanceof TLSSocket)) return
    socket.once('secureConnect', () => {
      const server = `${socket.servername || socket.remoteAddress}:${socket.remotePort}`
      const { valid_from: from, valid_to: to } = socket.getPeerCertificate()
      checks.set(server, checkCertificate(server, Date.parse(from), Date.parse(to), Date.now()))
    })
  })
  return checks
}

const WEEK_MS = 7 * 24 * 60 * 60 * 1_000

/**
 * A certificate must last for another week. One that is issued for a shorter time must have a third
 * of it left, because programs that renew certificates do so then.
 */
export function checkCertificate(server: string, from: number, to: number, now: number) {
  const isEnding = to - now < Math.min(WEEK_MS, (to - from) / 3)
  const text = `the certificate of ${server} ends on ${new Date(to).toISOString()}`
  const dates = `openssl s_client -connect ${server} </dev/null | openssl x509 -noout -dates`
  return check(!isEnding, text, `${dates}  # once it is renewed`)
}
