// Inflates Zstandard, of which a file may have several frames.
import type { Transform } from 'node:stream'

/** `bytesWritten`: the compressed bytes that it has used. */
type Inflater = Transform & { readonly bytesWritten: number }

/**
 * Inflates one frame after another, because Node ends a stream at a frame that ends within a chunk, and drops the rest.
 * Programs that compress in parallel write many frames, and people join files.
 */
export async function* inflateFrames(
  chunks: AsyncGenerator<Buffer>,
  createInflater: () => Inflater,
): AsyncGenerator<Buffer> {
  try {
    let rest = await nextOf(chunks)
    while (rest !== undefined) rest = (yield* inflateFrame(rest, chunks, createInflater())) ?? (await nextOf(chunks))
  } finally {
    await chunks.return(undefined)
  }
}

async function nextOf(chunks: AsyncGenerator<Buffer>): Promise<Buffer | undefined> {
  const { value, done } = await chunks.next()
  return done ? undefined : value
}

/** Inflates a frame, and the next ones if each begins with a chunk. Returns the unused end of the last chunk, if any. */
async function* inflateFrame(
  first: Buffer,
  following: AsyncGenerator<Buffer>,
  inflater: Inflater,
): AsyncGenerator<Buffer, Buffer | undefined> {
  let written = 0
  let last = first
  async function feed(): Promise<void> {
    for (let chunk: Buffer | undefined = first; chunk !== undefined; chunk = await nextOf(following)) {
      written += chunk.length
      last = chunk
      await used(inflater, chunk)
      if (inflater.destroyed || inflater.bytesWritten < written) return
    }
    inflater.end()
  }
  const feeding = feed().catch((error) => void inflater.destroy(error))
  yield* inflater
  await feeding
  const unused = written - inflater.bytesWritten
  return unused > 0 ? last.subarray(last.length - unused) : undefined
}

/** Resolves when the inflater has used the chunk, or the part of it that belongs to the frame. */
function used(inflater: Inflater, chunk: Buffer): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      inflater.off('close', done)
      resolve()
    }
    inflater.once('close', done)
    inflater.write(chunk, done)
  })
}
