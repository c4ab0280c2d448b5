// Finds the conversations of mails by their references. This is the algorithm REFERENCES of RFC
// 5256 without its last step, which merges by subject. Each id needs about 80 bytes, even a
// long one.
import { createHash } from 'node:crypto'
import type { Row } from './sort-rows.ts'
import type { Spool, SpoolFile } from './spool.ts'

/** The text of a row that has an id of its conversation. */
export interface ConversationIds {
  ids: string[]
}

/** The order of the rows within a conversation. */
const [TOP_ID, OTHER_ID, RECORD] = ['0', '1', '2']

/**
 * Links each id to at most one parent. The parent of a mail is its last reference. Other mails do
 * not change that parent, so the order of mails does not matter. An id also belongs to a
 * conversation if the input has no mail with that id.
 */
export function createConversations(
  createSpool: SpoolFile['createSpool'],
  pause: () => Promise<void>,
) {
  const ids = createSpool<{ id: string }>()
  const links = createSpool<{ number: number; references: number[] }>()
  const records = createSpool<Pick<Row, 'order' | 'text'> & { number: number }>()
  const numbers = new Map<string, number>()
  /** The number of an ancestor, by the number of an id. If the id has no parent, its own number. */
  const above: number[] = []

  function numberOf(id: string): number {
    const digest = createHash('sha256').update(id).digest().toString('latin1', 0, DIGEST_BYTES)
    const known = numbers.get(digest)
    if (known !== undefined) return known
    ids.add({ id })
    numbers.set(digest, above.length)
    return above.push(above.length) - 1
  }

  /** Returns the topmost ancestor. Shortens the path for the next search. */
  function topOf(number: number): number {
    let at = number
    for (let next = above[at] ?? at; next !== at; next = above[at] ?? at) {
      above[at] = above[next] ?? next
      at = next
    }
    return at
  }

  function link(child: number, parent: number): void {
    const top = topOf(parent)
    if (above[child] === child && top !== child) above[child] = top
  }

  /** Yields blocks, and lets the event loop do other work before each. */
  async function* slowly<T extends object>({ blocks }: Spool<T>): AsyncGenerator<readonly T[]> {
    for (const block of blocks()) {
      await pause()
      yield block
    }
  }

  /**
   * Links each referenced id to the one before it, then joins conversations without mails to those
   * with mails. Returns an array with 1 for each id that is the topmost of a conversation with
   * mails.
   */
  async function linkReferences(): Promise<Uint8Array> {
    for await (const block of slowly(links))
      for (const { references } of block)
        for (const [at, number] of references.entries())
          if (at > 0) link(number, references[at - 1] ?? number)
    const tops = new Uint8Array(above.length)
    for await (const block of slowly(links)) for (const { number } of block) tops[topOf(number)] = 1
    for await (const block of slowly(links))
      for (const { number, references } of block)
        for (const each of references)
          if (tops[topOf(each)] === 0) above[topOf(each)] = topOf(number)
    return tops
  }

  return {
    /**
     * Adds a mail's record. `key` is its Message-ID.
     * @param before the ids before the mail, its parent last.
     */
    add({ key, order, text }: Row, before: readonly string[]): void {
      const number = numberOf(key)
      const references = before.map(numberOf)
      const parent = references.at(-1)
      if (parent !== undefined) link(number, parent)
      links.add({ number, references })
      records.add({ number, order, text })
    },
    /**
     * Ends adding. Yields a row for each id of a conversation (`ConversationIds`), and the records.
     * The key is the number of the topmost id, so conversations keep the order of the input. The
     * input may lack the topmost mail.
     */
    async *rows(): AsyncGenerator<Row[]> {
      const tops = await linkReferences()
      numbers.clear()
      let number = -1
      const rowsOf = ({ id }: { id: string }): Row[] => {
        number += 1
        const top = topOf(number)
        if (tops[top] === 0) return []
        const text: ConversationIds = { ids: [id] }
        const row = { key: keyOf(top), order: OTHER_ID, text: JSON.stringify(text) }
        return [top === number ? { ...row, order: TOP_ID, topId: id } : row]
      }
      for await (const block of slowly(ids)) yield block.flatMap(rowsOf)
      for await (const block of slowly(records))
        yield block.map(({ number, order, text }) => ({
          key: keyOf(topOf(number)),
          order: `${RECORD}${order}`,
          text,
        }))
    },
  }
}

function keyOf(top: number): string {
  return String(top).padStart(10, '0')
}

/** With 12 bytes, two ids do not have the same digest by chance. They would count as one. */
const DIGEST_BYTES = 12
