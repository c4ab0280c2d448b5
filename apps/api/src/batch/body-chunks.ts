import { finished, type Readable } from 'node:stream'
import { serviceStops } from '../read-body.ts'

/**
 * A body's chunks as they come. However it is left, the body stays as it is and nothing listens to it any more, so that whoever answers can drain
 * the rest: a body that is iterated by itself is destroyed when its reader throws, and its connection with it.
 *
 * @param stopping ends the wait for a chunk.
 * @throws {ProblemError} 503 once stopping; what the body fails with where its connection breaks.
 */
export async function* bodyChunks(body: Readable, stopping: AbortSignal): AsyncGenerator<Buffer> {
  let onChange = () => {}
  let end: { error?: unknown } | undefined
  const wake = () => onChange()
  const unwatch = finished(body, { writable: false }, (error) => {
    end = error ? { error } : {}
    wake()
  })
  body.on('readable', wake)
  stopping.addEventListener('abort', wake)
  try {
    for (;;) {
      if (stopping.aborted) throw serviceStops()
      const chunk: Buffer | null = body.destroyed ? null : body.read()
      if (chunk !== null) yield chunk
      else if (end === undefined) await new Promise<void>((resolve) => (onChange = resolve))
      else if (end.error !== undefined) throw end.error
      else return
    }
  } finally {
    stopping.removeEventListener('abort', wake)
    body.off('readable', wake)
    unwatch()
  }
}
