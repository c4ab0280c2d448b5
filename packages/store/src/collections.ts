import type { Collection, Db } from 'mongodb'
import type { QuoteDocument, SourceDocument } from './documents.ts'
import type { GuardedDocument } from './guarded-write.ts'

/** Where threads lie: each collection as what is read of it, and as what is written by guarded writes alone. */
export interface Collections {
  sources: Collection<SourceDocument>
  quotes: Collection<QuoteDocument>
  guardedSources: Collection<GuardedDocument>
  guardedQuotes: Collection<GuardedDocument>
}

/** Names the collections of a database whose client writes with majority write concern. */
export function collectionsOf(db: Db): Collections {
  return {
    sources: db.collection('sources'),
    quotes: db.collection('quotes'),
    guardedSources: db.collection('sources'),
    guardedQuotes: db.collection('quotes'),
  }
}

/** Makes the one index that Sluice needs, `quotes.sourceId`; doing it again changes nothing. */
export async function createIndexes({ quotes }: Collections): Promise<void> {
  await quotes.createIndex({ sourceId: 1 })
}
