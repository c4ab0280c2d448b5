import { write, writeSync } from 'node:fs'
import type { DestinationStream } from 'pino'

// Lines leave in blocks of 32 KB, at the latest after 100 ms: a write for each would cost more than the line itself.
const BLOCK_LENGTH = 32_768
const FLUSH_MS = 100
/** Of lines that nobody takes so much is held (in characters); newer ones are dropped then, for a process must outlive its log's reader. */
const HELD_LENGTH = 16 * 1024 * 1024
/** How often, and how long apart, the last lines are offered to a reader that does not take them, when the process exits. */
const LAST_TRIES = 20
const LAST_TRY_MS = 10

/**
 * Writes lines to a file descriptor, one block at a time. Whatever becomes of the descriptor's reader, the process goes on, and exits: what can't be
 * written any more is dropped. What is held when the process exits is written then.
 */
export function createLineWriter(fd: number): DestinationStream {
  let held = ''
  let underWay = Buffer.alloc(0)
  let timer: NodeJS.Timeout | undefined
  let inFlight = false
  let broken = false

  function flush(): void {
    clearTimeout(timer)
    timer = undefined
    if (broken || underWay.length > 0 || held === '') return
    underWay = Buffer.from(held)
    held = ''
    writeOn()
  }

  function writeOn(): void {
    inFlight = true
    write(fd, underWay, (error, written) => {
      inFlight = false
      if (error !== null && error.code !== 'EAGAIN') return giveUp()
      underWay = underWay.subarray(error === null ? written : 0)
      if (underWay.length > 0) setTimeout(writeOn, error === null ? 0 : 10).unref()
      else if (held.length >= BLOCK_LENGTH) flush()
      else if (held !== '') flushSoon()
    })
  }

  function flushSoon(): void {
    timer ??= setTimeout(flush, FLUSH_MS).unref()
  }

  function giveUp(): void {
    broken = true
    held = ''
    underWay = Buffer.alloc(0)
  }

  process.on('exit', () => {
    // What the kernel is taking right now is as good as written; writing it again would double it.
    if (!broken) writeLast(fd, Buffer.concat([inFlight ? Buffer.alloc(0) : underWay, Buffer.from(held)]))
  })

  return {
    write(line) {
      if (broken || held.length > HELD_LENGTH) return
      held += line
      if (held.length >= BLOCK_LENGTH) flush()
      else flushSoon()
    },
  }
}

function writeLast(fd: number, last: Buffer): void {
  let rest = last
  for (let tries = 0; rest.length > 0 && tries < LAST_TRIES; tries++) {
    try {
      rest = rest.subarray(writeSync(fd, rest))
    } catch (error) {
      const mayTakeLater = error instanceof Error && 'code' in error && error.code === 'EAGAIN'
      if (!mayTakeLater) return
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, LAST_TRY_MS)
    }
  }
}
