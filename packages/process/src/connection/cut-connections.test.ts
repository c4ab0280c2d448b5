import assert from 'node:assert/strict'
import { Socket } from 'node:net'
import { test } from 'vitest'
import { createUnreadCutter } from './cut-connections.ts'

/** A connection whose caller has read some bytes and has others to read. */
function caller(read: number, unread: number) {
  const state = { read, unread }
  const socket = new Socket()
  Object.defineProperties(socket, {
    bytesWritten: { get: () => state.read + state.unread },
    writableLength: { get: () => state.unread },
  })
  return { socket, state }
}

test('of too many unread bytes, those of callers that read nothing are cut, the largest first', () => {
  const cut = createUnreadCutter(1_000_000)
  const [reads, rests, restsToo] = [caller(0, 900_000), caller(0, 800_000), caller(0, 200_000)]
  const sockets = [reads, rests, restsToo].map(({ socket }) => socket)
  cut(sockets)
  reads.state.read += 100_000
  cut(sockets)
  assert.deepEqual(
    sockets.map(({ destroyed }) => destroyed),
    [false, true, true],
  )
})

test('a caller that has read all that it could is not cut, however little that was', () => {
  const cut = createUnreadCutter(1_000_000)
  const { socket, state } = caller(0, 10)
  cut([socket])
  Object.assign(state, { read: 10, unread: 2_000_000 })
  cut([socket])
  assert.equal(socket.destroyed, false)
  cut([socket])
  assert.equal(socket.destroyed, true)
})
