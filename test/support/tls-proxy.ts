import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { connect, createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pipeline } from 'node:stream'
import { createSecureContext, type SecureContext, TLSSocket } from 'node:tls'
import { promisify } from 'node:util'
import type { TestScope } from '@sluice/test-support'

/**
 * A certificate for this machine that no public authority signed, as a file, and what a server
 * needs of it.
 */
export interface Certificate {
  file: string
  keyFile: string
  context: SecureContext
}

/**
 * Makes a certificate for 127.0.0.1 and localhost by the program `openssl`. It is its own
 * authority.
 */
export async function makeCertificate(t: TestScope): Promise<Certificate> {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-tls-'))
  t.onTestFinished(() => rm(folder, { recursive: true }))
  const [key, file] = [join(folder, 'key.pem'), join(folder, 'certificate.pem')]
  const names = ['-subj', '/CN=sluice', '-addext', 'subjectAltName=IP:127.0.0.1,DNS:localhost']
  const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-noenc']
  await promisify(execFile)('openssl', [
    'req',
    '-x509',
    ...curve,
    ...names,
    '-days',
    '2',
    '-keyout',
    key,
    '-out',
    file,
  ])
  return {
    file,
    keyFile: key,
    context: createSecureContext({ key: await readFile(key), cert: await readFile(file) }),
  }
}

/** The first byte of a TLS connection. */
const HANDSHAKE = 22

/** What a proxy saw of its clients. */
export interface Seen {
  encrypted: number
  plaintext: number
  /** The names of servers by which clients asked (SNI, RFC 6066). */
  names: Set<string>
}

/**
 * Puts a server that speaks TLS before one that does not, until the test ends.
 *
 * @param options.isOpen lets plaintext pass, too.
 */
export async function openTlsProxy(
  t: TestScope,
  { context }: Certificate,
  serverPort: number,
  { port = 0, isOpen = false } = {},
): Promise<{ port: number; seen: Seen }> {
  const sockets = new Set<Socket>()
  const seen: Seen = { encrypted: 0, plaintext: 0, names: new Set() }

  function decrypt(client: Socket): TLSSocket {
    seen.encrypted++
    return new TLSSocket(client, {
      isServer: true,
      secureContext: context,
      SNICallback(name, done) {
        seen.names.add(name)
        done(null, context)
      },
    })
  }

  const server = createServer((client) => {
    sockets.add(client)
    client.on('close', () => sockets.delete(client))
    client.on('error', () => {}) // 'close' follows
    client.once('data', (first) => {
      client.pause().unshift(first)
      const isTls = first[0] === HANDSHAKE
      if (!isTls) seen.plaintext++
      if (!isTls && !isOpen) return void client.destroy()
      const clear = isTls ? decrypt(client) : client
      pipeline(clear, connect(serverPort, '127.0.0.1'), clear, () => client.destroy())
    })
  })
  server.listen(port, '127.0.0.1')
  await once(server, 'listening')
  t.onTestFinished(async () => {
    for (const socket of sockets) socket.destroy()
    await new Promise((resolve) => server.close(resolve))
  })
  return { port: Object(server.address()).port, seen }
}
