import { ObjectId } from 'mongodb'
import { bringIntoAgreement } from './agreement.ts'
import type { Collections } from './collections.ts'
import { type Closed, createClosed } from './contest-open.ts'
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
  /** Whether the batch is one of its own. */
  wrote(batch: WriterBatch): boolean
  /** Resolves when every batch that ended is closed; throws where that is not possible now. */
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
/** Where that failed it is tried again after so many ms. */
const CLOSE_AGAIN_MS = 1_000

/** Names a process to all others, when it first stores something. */
export function createWriter(store: Collections): Writer {
  const closed = createClosed()
  const books = new Map<string, Book>()
  let current: { name: string; book: Promise<Book> } | undefined

  async function open(name: string): Promise<Book> {
    const version = new ObjectId()
    const document: WriterDocument = { _id: name, since: new Date(), closed: 0, contested: [], meta: { version } }
    await writeGuarded(store.guardedWriters, [{ insert: document }], version)
    const book: Book = { name, version, begun: 0, ended: new Set(), whole: 0, closed: 0 }
    books.set(name, book)
    return book
  }

  /** What begins from now on goes under another name. */
  function leave(name: string): void {
    if (current?.name === name) current = undefined
  }

  async function close(book: Book): Promise<void> {
    while (book.closed < book.whole) {
      const upTo = book.whole
      if (!(await closeUpTo(store, closed, book, upTo))) {
        leave(book.name)
        books.delete(book.name)
        return
      }
      book.closed = upTo
      closed.learn({ _id: book.name, closed: upTo })
    }
  }

  /** Keeps no process alive: one that ends in order closes all first. */
  function closeSoon(book: Book, ms: number): void {
    book.timer ??= setTimeout(() => startClosing(book).catch(() => closeSoon(book, CLOSE_AGAIN_MS)), ms).unref()
  }

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
      if (current === undefined) {
        const name = new ObjectId().toHexString()
        current = { name, book: open(name) }
        current.book.catch(() => leave(name))
      }
      const book = await current.book
      book.begun += 1
      return { writer: book.name, batch: book.begun }
    },
    end({ writer, batch }) {
      const book = books.get(writer)
      if (book === undefined) return
      book.ended.add(batch)
      while (book.ended.delete(book.whole + 1)) book.whole += 1
      closeSoon(book, CLOSE_AFTER_MS)
    },
    abandon({ writer }) {
      leave(writer)
      const book = books.get(writer)
      if (book === undefined) return
      const forget = () => void books.delete(writer)
      startClosing(book).then(forget, forget)
    },
    closed,
    wrote: ({ writer }) => books.has(writer),
    async closeAll() {
      for (const book of books.values()) await startClosing(book)
    },
  }
}

/** Closes the writer's batches up to this one, when what others contested of them is summed. Gives false where the writer's document is gone. */
async function closeUpTo(store: Collections, others: Closed, book: Book, upTo: number): Promise<boolean> {
  const summed = new Set<string>()
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
      return true
    }
    const document = await store.writers.findOne({ _id: book.name })
    if (document === null) return false
    const due = document.contested
      .filter(({ batch, source }) => batch <= upTo && !summed.has(source))
      .map(({ source }) => source)
    await bringIntoAgreement(store, others, due, ({ writer, batch }) => writer === book.name && batch <= upTo)
    for (const source of due) summed.add(source)
    contested = document.contested.filter(({ batch }) => batch > upTo)
    book.version = document.meta.version
  }
}
