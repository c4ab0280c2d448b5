// Finds the conversations of mails by their references, as the algorithm REFERENCES of RFC 5256 does, without its last
// step, which merges by subject. The ids lie on disk; memory: eight bytes for each of them.
import type { DatabaseSync } from 'node:sqlite'
import type { SortRecord } from './external-sort.ts'

/** The text of a record with an id of its conversation. */
export interface ConversationIds {
  ids: string[]
}

/**
 * Each id is linked to one parent at most. The mail's own last reference counts before what other mails say of it, so
 * the order of the mails does not matter. An id of no mail in the input is part of the conversation too.
 *
 * @see https://www.rfc-editor.org/rfc/rfc5256#section-3
 */
export function createConversations(db: DatabaseSync) {
  db.exec(`
    CREATE TABLE ids (number INTEGER PRIMARY KEY, id TEXT UNIQUE);
    CREATE TABLE records (mail INTEGER, number INTEGER, place TEXT, refs TEXT);
  `)
  const insertId = db.prepare('INSERT INTO ids VALUES (?, ?) ON CONFLICT (id) DO NOTHING')
  const selectNumber = db.prepare('SELECT number FROM ids WHERE id = ?')
  const selectId = db.prepare('SELECT id FROM ids WHERE number = ?')
  const insertRecord = db.prepare('INSERT INTO records VALUES (?, ?, ?, ?)')
  /** An ancestor of each id by their numbers, and the id itself if it has no parent. */
  const above: number[] = []

  function numberOf(id: string): number {
    if (insertId.run(above.length, id).changes === 0) return Number(selectNumber.get(id)?.number)
    return above.push(above.length) - 1
  }

  /** Shortens the way for the next search. */
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

  /**
   * Links the references of each mail to each other, then those to the mail that belong to no mail's conversation.
   * Returns 1 for each topmost id of mails, by its number.
   */
  function linkReferences(): Uint8Array {
    const all = db.prepare('SELECT number, refs FROM records')
    for (const { refs } of all.iterate()) {
      const numbers: number[] = JSON.parse(String(refs))
      for (const [at, number] of numbers.entries()) if (at > 0) link(number, numbers[at - 1] ?? number)
    }
    const tops = new Uint8Array(above.length)
    for (const { number } of all.iterate()) tops[topOf(Number(number))] = 1
    for (const { number, refs } of all.iterate()) {
      const numbers: number[] = JSON.parse(String(refs))
      for (const each of numbers) if (tops[topOf(each)] === 0) above[topOf(each)] = topOf(Number(number))
    }
    return tops
  }

  return {
    /** @param mail the number of the record. */
    add({ key, references = [], order }: SortRecord, mail: number): void {
      const number = numberOf(key)
      const numbers = references.map(numberOf)
      const parent = numbers.at(-1)
      if (parent !== undefined) link(number, parent)
      insertRecord.run(mail, number, order, JSON.stringify(numbers))
    },
    /**
     * Ends adding. Yields the records of mails, and the ids of conversations, which have a text (`ConversationIds`) and no
     * mail. `key`: the topmost id, which may be that of no mail in the input. `share`: how far from the beginning of the
     * input the conversation was first named, from 0 to below 1.
     */
    *records() {
      const tops = linkReferences()
      const at = (number: unknown) => {
        const top = topOf(Number(number))
        return { key: String(selectId.get(top)?.id), share: top / above.length }
      }
      for (const { number, id } of db.prepare('SELECT number, id FROM ids').iterate()) {
        const text: ConversationIds = { ids: [String(id)] }
        if (tops[topOf(Number(number))] === 1)
          yield { ...at(number), place: '', text: JSON.stringify(text), mail: null }
      }
      for (const { mail, number, place } of db.prepare('SELECT mail, number, place FROM records').iterate())
        yield { ...at(number), place: String(place), text: null, mail: Number(mail) }
    },
  }
}
