import type { Collection, CollectionOptions, Db } from 'mongodb'
import type { QuoteDocument, SourceDocument, WriterDocument } from './documents.ts'
import { type WriteCommands, writeCommandsOf } from './write-commands.ts'

/** Where threads lie, and who writes them: each collection as what is read of it, and as what is written by guarded writes alone. */
export interface Collections {
  sources: Collection<SourceDocument>
  quotes: Collection<QuoteDocument>
  writers: Collection<WriterDocument>
  guardedSources: WriteCommands
  guardedQuotes: WriteCommands
  guardedWriters: WriteCommands
}

/** Sums are committed under a guard, so they must not come from a secondary that lags, whatever the URL prefers. */
const PRIMARY: CollectionOptions = { readPreference: 'primary' }

/** Names the collections of a database. */
export function collectionsOf(db: Db): Collections {
  return {
    sources: db.collection('sources', PRIMARY),
    quotes: db.collection('quotes', PRIMARY),
    writers: db.collection('writers', PRIMARY),
    guardedSources: writeCommandsOf(db, 'sources'),
    guardedQuotes: writeCommandsOf(db, 'quotes'),
    guardedWriters: writeCommandsOf(db, 'writers'),
  }
}

/** Makes the one index that Sluice needs, `quotes.sourceId`; doing it again changes nothing. */
export async function createIndexes({ quotes }: Collections): Promise<void> {
  await quotes.createIndex({ sourceId: 1 })
}
