// Reads comments.csv of Google Takeout: what an account wrote, with the ids of videos, but without
// names.
import { byColumns, type CsvRow } from '../read/csv-rows.ts'
import { asObjects, type JsonObject } from '../values/record-fields.ts'

/** Recognises the file by its header in English. */
export const isOfTakeout = byColumns('Comment ID', 'Video ID', 'Comment Text')

/** Converts a row to the API's form of a comment, unless it is about the post of a channel. */
export function commentOfTakeout({ values }: CsvRow): JsonObject | undefined {
  if (!values.has('Video ID') && values.has('Post ID')) return undefined
  const snippet = {
    videoId: values.get('Video ID'),
    textOriginal: textOfPieces(values.get('Comment Text') ?? ''),
    authorDisplayName: values.get('Channel ID'),
    publishedAt: values.get('Comment Create Timestamp'),
    parentId: values.get('Parent Comment ID'),
  }
  return { id: values.get('Comment ID'), snippet }
}

/**
 * Joins the pieces of a text: JSON objects, separated by commas, each with a piece. In older files,
 * one object has a list of pieces.
 */
function textOfPieces(field: string): string {
  if (!field.startsWith('{"')) return field
  // A piece may be only white space.
  return (
    piecesIn(field)
      ?.flatMap(({ text }) => (typeof text === 'string' ? text : []))
      .join('') ?? field
  )
}

function piecesIn(field: string): JsonObject[] | undefined {
  try {
    const values: unknown = JSON.parse(`[${field}]`)
    return asObjects(values).flatMap((value) =>
      value.takeoutSegments ? asObjects(value.takeoutSegments) : [value],
    )
  } catch {
    return undefined
  }
}
