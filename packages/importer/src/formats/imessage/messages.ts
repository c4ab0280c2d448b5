// Reads the rows of Messages' database. The columns differ between versions of the operating
// system.
import { FormatError } from '../format.ts'
import type { JsonObject } from '../values/record-fields.ts'

const ROWS_TOGETHER = 500
/** The seconds from 1970 to 2001, when Apple's time begins. Newer systems count nanoseconds. */
const APPLE_EPOCH = 978_307_200
const IN_NANOSECONDS = 'm.date > 100000000000'
/**
 * Columns that older versions lack. If one is missing, it is NULL. Numbers are read as text,
 * because nanoseconds exceed the exact integers of a double.
 */
const LATER = [
  'subject',
  'item_type',
  'associated_message_type',
  'thread_originator_guid',
  'date_edited',
  'date_retracted',
]

/** Yields lists of messages. Throws FormatError if this version of Node has no SQLite. */
export async function* messagesIn(path: string): AsyncGenerator<JsonObject[]> {
  const { DatabaseSync } = await import('node:sqlite').catch(() => {
    throw new FormatError(
      'This Node cannot read the database of Messages. Use Node 22.13 or later.',
    )
  })
  const database = new DatabaseSync(path)
  try {
    const columns = database.prepare("SELECT name FROM pragma_table_info('message')").all()
    let rows: JsonObject[] = []
    for (const row of database
      .prepare(queryOf(new Set(columns.map(({ name }) => name))))
      .iterate()) {
      rows.push(row)
      if (rows.length < ROWS_TOGETHER) continue
      yield rows
      rows = []
    }
    yield rows
  } finally {
    database.close()
  }
}

function queryOf(columns: ReadonlySet<unknown>): string {
  const later = LATER.map(
    (name) => `${columns.has(name) ? `CAST(m.${name} AS TEXT)` : 'NULL'} AS ${name}`,
  )
  const body = columns.has('attributedBody') ? 'm.attributedBody' : 'NULL'
  // Nearly all messages have this list, so read it only if neither other column has a text.
  const info = columns.has('message_summary_info') ? 'm.message_summary_info' : 'NULL'
  return `
    SELECT m.ROWID AS id, m.guid AS guid, m.text AS text, m.is_from_me AS is_from_me, h.id AS handle, ${later.join()},
      ${body} AS attributedBody, CASE WHEN ${body} IS NULL AND m.text IS NULL THEN ${info} END AS info,
      CASE WHEN m.date = 0 THEN NULL WHEN ${IN_NANOSECONDS} THEN m.date / 1000000000.0 ELSE m.date END
        + ${APPLE_EPOCH} AS seconds,
      c.chat_identifier AS chat, c.display_name AS chat_name,
      (SELECT json_group_array(COALESCE(a.transfer_name, a.filename, a.mime_type, 'file'))
        FROM message_attachment_join f JOIN attachment a ON a.ROWID = f.attachment_id
        WHERE f.message_id = m.ROWID) AS files
    FROM message m
    LEFT JOIN handle h ON h.ROWID = m.handle_id
    LEFT JOIN (SELECT message_id, MIN(chat_id) AS chat_id FROM chat_message_join GROUP BY message_id) j
      ON j.message_id = m.ROWID
    LEFT JOIN chat c ON c.ROWID = j.chat_id
    ORDER BY m.ROWID`
}
