// Keeps the watermarks of all writers that this process knows.
import type { StoreCommands } from './commands.ts'
import type { SourceDocument, WriterBatch } from './documents.ts'
import { findByIds } from './mongodb.ts'

export interface Watermarks {
  /** The batch is known to be settled. */
  covers(batch: WriterBatch): boolean
  /** Remembers a watermark that was read or raised. */
  remember(writer: string, watermark: number): void
  /** Reads the watermarks of the writers of those batches that are not known to be settled. */
  read(batches: readonly WriterBatch[]): Promise<void>
  /** Returns the source without the tokens of batches that are known to be settled. */
  withoutSettledTokens<Source extends Pick<SourceDocument, 'meta'>>(source: Source): Source
}

/** The writers of an hour: each process has one name, and a new one after each batch that failed. */
const MAX_WRITERS = 10_000

/** Creates watermarks that know no writer yet. */
export function createWatermarks(commands: Pick<StoreCommands, 'find'>): Watermarks {
  const known = new Map<string, number>()
  const covers = ({ writer, batch }: WriterBatch) => (known.get(writer) ?? 0) >= batch

  function remember(writer: string, watermark: number): void {
    if (known.size >= MAX_WRITERS) known.clear()
    known.set(writer, Math.max(watermark, known.get(writer) ?? 0))
  }

  return {
    covers,
    remember,
    async read(batches) {
      const names = new Set(batches.filter((batch) => !covers(batch)).map(({ writer }) => writer))
      const documents = await findByIds([...names], (some) => commands.find('writers', some))
      for (const { _id, watermark } of documents) remember(_id, watermark)
    },
    withoutSettledTokens(source) {
      const { tokens, ...meta } = source.meta
      if (tokens === undefined || !tokens.some(covers)) return source
      const open = tokens.filter((token) => !covers(token))
      return { ...source, meta: open.length === 0 ? meta : { ...meta, tokens: open } }
    },
  }
}
