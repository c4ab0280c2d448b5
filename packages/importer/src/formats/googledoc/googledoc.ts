// Reads comments on a Google document, in the form in which the Drive API lists them
// (`comments.list`, versions 2 and 3).
import type { Format, Found, Place } from '../format.ts'
import { eachFile, piecesOf, rejected, skipped } from '../format.ts'
import { byShape } from '../read/json-beginning.ts'
import { foundIn, readJsonFile, recordsAndLists } from '../read/json-records.ts'
import { htmlToText } from '../values/html-text.ts'
import { asIsoDate } from '../values/iso-date.ts'
import {
  asId,
  asObject,
  asObjects,
  asText,
  firstLine,
  type JsonObject,
  present,
} from '../values/record-fields.ts'

const piece = piecesOf('googledoc')
const RECORDS = recordsAndLists('comments', 'items')
const PLACES = ['', '[].', 'comments[].', 'items[].', '[].comments[].', '[].items[].']

/**
 * Reads each comment with its replies as a source, because the API's answer does not name the
 * document. The text to which the comment refers becomes the description.
 */
export const googledocFormat: Format = {
  name: 'googledoc',
  title: 'Google Docs comments',
  description: 'comments on a Google document: comments.list of the Drive API (JSON)',
  sourceIs: 'a comment with its replies',
  recognises: byShape(({ members }) =>
    PLACES.some((at) => {
      const has = (...names: string[]) => names.some((name) => members.has(`${at}${name}`))
      return (
        has('author.displayName') && has('createdTime', 'createdDate') && has('content', 'replies')
      )
    }),
  ),
  read: eachFile((file) =>
    foundIn(readJsonFile(file, RECORDS), ({ value, place }) => readPage(value, place)),
  ),
}

function readPage(value: unknown, place: Place): Found[] {
  const record = asObject(value) ?? {}
  const list = record.comments ?? record.items
  if (Array.isArray(list)) return list.flatMap((one) => readPage(one, place))
  const externalId = asId(record.id) ?? asId(record.commentId)
  if (externalId === undefined) return [rejected('a comment without an `id`', place, value)]
  const quoted = asObject(record.quotedFileContent) ?? asObject(record.context)
  const quotedText = htmlToText(asText(quoted?.value) ?? '')
  const title = asText(firstLine(asText(record.content) ?? ''))
  const fields = present({
    title,
    placeholderTitle: asText(firstLine(quotedText)) ?? `Comment ${externalId}`,
    description: quotedText,
    createdAt: dateOf(record),
  })
  return [record, ...asObjects(record.replies)].map((each, at) => {
    const read = readComment(each, at > 0, externalId)
    return typeof read === 'string'
      ? skipped(read, place)
      : piece(externalId, read.order, fields, [read.quote], place)
  })
}

/**
 * Reads a comment, or says why it is left out. A deleted comment has no text and no author. A reply
 * may only resolve the comment, or open it again.
 */
function readComment(comment: JsonObject, isReply: boolean, parent: string) {
  const text = asText(comment.content) ?? htmlToText(asText(comment.htmlContent) ?? '')
  const id = asId(comment.id) ?? asId(comment.replyId) ?? asId(comment.commentId)
  if (comment.deleted === true) return 'comments that were deleted'
  if (text === '')
    return isReply ? 'replies that only resolve or reopen a comment' : 'comments without text'
  const createdAt = dateOf(comment)
  const speaker = asText(asObject(comment.author)?.displayName)
  const replyingTo = isReply ? parent : undefined
  const quote = { text, ...present({ externalId: id, speaker, createdAt, replyingTo }) }
  const edited = asText(comment.modifiedTime) ?? asText(comment.modifiedDate) ?? ''
  // The copy that was edited last comes last, and so replaces the others.
  return { quote, order: `${createdAt ?? '~'}/${id ?? ''}/${edited}` }
}

function dateOf({ createdTime, createdDate }: JsonObject): string | undefined {
  return asIsoDate(createdTime) ?? asIsoDate(createdDate)
}
