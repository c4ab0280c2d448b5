// The rows of the database of Messages, whose columns differ between versions of the system.
import { FormatError } from '../format.ts'
import { asId, asText, type JsonObject } from '../values/record-fields.ts'

/** Seconds from 1970 to 2001, where Apple's time begins. Newer systems count nanoseconds. */
const APPLE_EPOCH = 978_307_200
const IN_NANOSECONDS = 'm.date > 100000000000'

/** Columns that came later, with the names under which they are returned. A missing one is NULL. */
const LATER = {
  attributedBody: 'attributedBody',
  item_type: 'item_type',
  associated_message_type: 'associated_type',
  thread_originator_guid: 'reply_to',
  date_edited: 'date_edited',
  date_retracted: 'date_retracted',
}

/** Opens the database for reading. Throws FormatError if this Node has no SQLite. */
export async function openMessages(path: string) {
  const { DatabaseSync } = await import('node:sqlite').catch(() => {
    throw new FormatError('This Node cannot read the database of Messages. Use Node 22.13 or later.')
  })
  const database = new DatabaseSync(path)
  const columns = new Set(
    database
      .prepare('PRAGMA table_info(message)')
      .all()
      .map(({ name }) => String(name)),
  )
  const later = Object.entries(LATER).map(([column, name]) => {
    // As text, because Node throws at an integer that a double does not have, such as many nanoseconds.
    const value = column === 'attributedBody' ? `m.${column}` : `CAST(m.${column} AS TEXT)`
    return `${columns.has(column) ? value : 'NULL'} AS ${name}`
  })
  const rows = database.prepare(`
    SELECT m.ROWID AS id, m.guid AS guid, m.text AS text, m.is_from_me AS is_from_me, h.id AS handle,
      CASE WHEN ${IN_NANOSECONDS} THEN m.date / 1000000000.0 ELSE m.date END + ${APPLE_EPOCH} AS seconds,
      c.chat_identifier AS chat, c.display_name AS chat_name, ${later.join(', ')}
    FROM message m
    LEFT JOIN handle h ON h.ROWID = m.handle_id
    LEFT JOIN (SELECT message_id, MIN(chat_id) AS chat_id FROM chat_message_join GROUP BY message_id) j
      ON j.message_id = m.ROWID
    LEFT JOIN chat c ON c.ROWID = j.chat_id
    ORDER BY m.ROWID`)
  const files = database.prepare(`
    SELECT COALESCE(a.transfer_name, a.filename, a.mime_type, 'file') AS name
    FROM message_attachment_join j JOIN attachment a ON a.ROWID = j.attachment_id WHERE j.message_id = ?`)
  return {
    *rows(): Generator<JsonObject> {
      yield* rows.iterate()
    },
    filesOf: ({ id }: JsonObject) => files.all(asId(id) ?? '').flatMap(({ name }) => asText(name) ?? []),
    [Symbol.dispose]: () => database.close(),
  }
}
