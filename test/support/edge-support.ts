import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { connect, type Socket } from 'node:net'
import type { TestScope } from '@sluice/test-support'
import { residentBytes } from './resident-bytes.ts'

const MIB = 1024 * 1024

/**
 * Measures the growth of a process's memory at its peak from now on. The returned function resolves
 * to MiB.
 */
export async function watchPeak({ pid }: { pid: number }): Promise<() => Promise<number>> {
  // Linux then forgets the peak so far.
  await writeFile(`/proc/${pid}/clear_refs`, '5')
  const before = await residentBytes(pid)
  return async () => ((await residentBytes(pid, 'VmHWM')) - before) / MIB
}

/** Opens connections that read nothing, all at once. They end with the test. */
export async function openSockets(t: TestScope, url: string, count: number): Promise<Socket[]> {
  const { hostname, port } = new URL(url)
  const sockets = Array.from({ length: count }, () => connect(Number(port), hostname).pause())
  t.onTestFinished(() => {
    for (const socket of sockets) socket.destroy()
  })
  for (const socket of sockets) socket.on('error', () => {}) // a connection that is cut
  await Promise.all(sockets.map((socket) => once(socket, 'connect')))
  return sockets
}

/** Sends bytes on a connection of its own and resolves with all that comes back until its end. */
export async function exchange(
  url: string,
  bytes: string,
  { halfClose = false } = {},
): Promise<string> {
  const { hostname, port } = new URL(url)
  const socket = connect({ port: Number(port), host: hostname, allowHalfOpen: true }).setEncoding(
    'latin1',
  )
  if (halfClose) socket.end(bytes, 'latin1')
  else socket.write(bytes, 'latin1')
  let seen = ''
  for await (const text of socket) seen += text
  socket.destroy()
  return seen
}

/**
 * Calls again and again, one call after the other, until the work is done. Resolves with the
 * longest time of one, in ms.
 */
export async function slowestWhile(
  work: Promise<unknown>,
  call: () => Promise<unknown>,
): Promise<number> {
  let isDone = false
  const done = work.finally(() => {
    isDone = true
  })
  let slowest = 0
  while (!isDone) {
    const began = performance.now()
    await call()
    slowest = Math.max(slowest, performance.now() - began)
  }
  await done
  return slowest
}
