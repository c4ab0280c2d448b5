import { ObjectId } from 'mongodb'
import { bringIntoAgreement } from './agreement.ts'
import type { Collections } from './collections.ts'
import type { Closed } from './contest-open.ts'
import type { WriterBatch, WriterDocument } from './documents.ts'
import { writeGuarded } from './guarded-write.ts'

/** A process that stores requests, as other such processes see it. */
export interface Writer {
  /** Begins a batch. Nothing may be opened before this resolves, as nobody could tell that the batch is not closed. */
  begin(): Promise<WriterBatch>
  /** Tells that all which the batch opened is whole: soon all others can tell, too. */
  end(batch: WriterBatch): void
  /** Tells that the batch may have left something half. It is never closed, and the next batches go under another name. */
  abandon(batch: WriterBatch): void
  /** What it knows of all writers, itself among them. */
  closed: Closed
  /** Resolves when every batch that ended is closed. */
  closeAll(): Promise<void>
}

/** What a writer knows of the document that stands for it. */
interface Book {
  name: string
  /** The document's version, as far as is known: who contests a batch moves it. */
  version: ObjectId
  begun: number
  /** Batches that ended before one that began earlier. */
  ended: Set<number>
  /** All batches up to this one have ended. */
  whole: number
  closed: number
  closing?: Promise<void>
  timer?: NodeJS.Timeout
}

/** Batches that end within so many ms are closed by one write: what a crash leaves to be summed once more is so much work. */
const CLOSE_AFTER_MS = 20

/** Names a process to all others, when it first stores something. */
export function createWriter(store: Collections): Writer {
  const closedUpTo = new Map<string, number>()
  const closed: Closed = {
    isClosed: ({ writer, batch }) => (closedUpTo.get(writer) ?? 0) >= batch,
    learn: (document) => void closedUpTo.set(document._id, document.closed),
  }
  const books = new Map<string, Book>()
  let current: Promise<Book> | undefined

  async function open(): Promise<Book> {
    const version = new ObjectId()
    const name = new ObjectId().toHexString()
    const document: WriterDocument = { _id: name, since: new Date(), closed: 0, contested: [], meta: { version } }
    await writeGuarded(store.guardedWriters, [{ insert: document }], version)
    const book: Book = { name, version, begun: 0, ended: new Set(), whole: 0, closed: 0 }
    books.set(name, book)
    return book
  }

  async function close(book: Book): Promise<void> {
    while (book.closed < book.whole) {
      const upTo = book.whole
      await closeUnlessContested(store, closed, book, upTo)
      book.closed = upTo
      closedUpTo.set(book.name, upTo)
    }
  }

  /** What fails now is tried again when the next batch ends. */
  function startClosing(book: Book): Promise<void> {
    clearTimeout(book.timer)
    delete book.timer
    book.closing ??= close(book).finally(() => {
      delete book.closing
    })
    return book.closing
  }

  return {
    async begin() {
      current ??= open().catch((error) => {
        current = undefined
        throw error
      })
      const book = await current
      book.begun += 1
      return { writer: book.name, batch: book.begun }
    },
    end({ writer, batch }) {
      const book = books.get(writer)
      if (book === undefined) return
      book.ended.add(batch)
      while (book.ended.delete(book.whole + 1)) book.whole += 1
      book.timer ??= setTimeout(() => startClosing(book).catch(() => {}), CLOSE_AFTER_MS)
    },
    abandon({ writer }) {
      current = undefined
      const book = books.get(writer)
      if (book === undefined) return
      const forget = () => void books.delete(writer)
      startClosing(book).then(forget, forget)
    },
    closed,
    async closeAll() {
      for (const book of books.values()) await startClosing(book)
    },
  }
}

/** Closes the writer's batches up to this one, when what others contested of them is summed. */
async function closeUnlessContested(store: Collections, others: Closed, book: Book, upTo: number): Promise<void> {
  let contested: WriterDocument['contested'] | undefined
  while (true) {
    const version = new ObjectId()
    const $set = { closed: upTo, ...(contested && { contested }), 'meta.version': version }
    const refused = await writeGuarded(
      store.guardedWriters,
      [{ id: book.name, read: book.version, update: { $set } }],
      version,
    )
    if (refused.size === 0) {
      book.version = version
      return
    }
    const document = await store.writers.findOne({ _id: book.name })
    if (document === null) throw new Error(`writer ${book.name} is not known any more`)
    const due = document.contested.filter(({ batch }) => batch <= upTo).map(({ source }) => source)
    await bringIntoAgreement(store, others, due, ({ writer, batch }) => writer === book.name && batch <= upTo)
    contested = document.contested.filter(({ batch }) => batch > upTo)
    book.version = document.meta.version
  }
}
