// Inflates a body that consists of several gzip members or zstd frames.
import type { Transform } from 'node:stream'

/** `bytesWritten`: the number of compressed bytes that the inflater has used. */
export type Inflater = Transform & { readonly bytesWritten: number }

/** The inflater can't decode some of the bytes. */
export class UndecodableError extends Error {
  override name = 'UndecodableError'
}

/**
 * Inflates one member after the other. Node would end the stream at a zstd frame that ends within a
 * chunk, and drop the rest. Programs that compress in parallel write many frames, and people join
 * compressed files.
 *
 * @param createInflater gets the beginning of a member, and the number of members before it. It may
 * throw.
 * @throws {UndecodableError} Errors of `chunks` are passed on as they are.
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
 * Inflates a member, and the following ones if Node continues with them. If a part of the last
 * chunk is left, returns it.
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

/** Resolves when the inflater has used the chunk, or as much of it as belongs to the member. */
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
