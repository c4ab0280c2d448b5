// Inflates what has several gzip members or zstd frames, one after another.
import type { Transform } from 'node:stream'

/** `bytesWritten`: the compressed bytes that it has used. */
export type Inflater = Transform & { readonly bytesWritten: number }

/** Some bytes mean nothing to the inflater. */
export class UndecodableError extends Error {
  override name = 'UndecodableError'
}

/**
 * Inflates one member after another, because Node ends a stream at a zstd frame that ends within a
 * chunk, and drops the rest. Programs that compress in parallel write many frames, and people join
 * files.
 *
 * @param createInflater gets the beginning of a member, and the number of members before it. It may
 * throw.
 * @throws {UndecodableError} What `chunks` throws is passed on as it is.
 */
export async function* inflateMembers(
  chunks: AsyncGenerator<Buffer>,
  createInflater: (beginning: Buffer, members: number) => Inflater,
): AsyncGenerator<Buffer> {
  let rest = await nextOf(chunks)
  for (let members = 0; rest !== undefined; members++)
    rest =
      (yield* inflateMember(rest, chunks, createInflater(rest, members))) ?? (await nextOf(chunks))
}

async function nextOf(chunks: AsyncGenerator<Buffer>): Promise<Buffer | undefined> {
  for (;;) {
    const next = await chunks.next()
    if (next.done) return undefined
    if (next.value.length > 0) return next.value
  }
}

/**
 * Inflates a member, and the next ones if Node does so by itself. Returns the unused end of the
 * last chunk, if any.
 */
async function* inflateMember(
  first: Buffer,
  following: AsyncGenerator<Buffer>,
  inflater: Inflater,
): AsyncGenerator<Buffer, Buffer | undefined> {
  inflater.on('error', () => {}) // `yield*` below reports the error.
  let written = 0
  let last = first
  async function feed(): Promise<void> {
    for (
      let chunk: Buffer | undefined = first;
      chunk !== undefined;
      chunk = await nextOf(following)
    ) {
      written += chunk.length
      last = chunk
      await used(inflater, chunk)
      if (inflater.destroyed || inflater.bytesWritten < written) return
    }
    inflater.end()
  }
  let failure: unknown
  const feeding = feed().catch((error) => {
    failure = error
    inflater.destroy()
  })
  try {
    yield* inflater
  } catch (error) {
    throw failure ?? new UndecodableError(String(Object(error).message), { cause: error })
  }
  await feeding
  const unused = written - inflater.bytesWritten
  return unused > 0 ? last.subarray(last.length - unused) : undefined
}

/** Resolves when the inflater has used the chunk, or the part of it that belongs to the member. */
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
