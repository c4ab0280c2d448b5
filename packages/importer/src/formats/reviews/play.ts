// Reads reviews of Google Play, from the CSV files of its console and its storage bucket.
import { unescape as decodeUrl } from 'node:querystring'
import { parseIsoDate } from '@sluice/contract'
import { eachFile, type Format, type Found, piecesOf, rejected } from '../format.ts'
import { byColumns, type CsvRow, foundInRows } from '../read/csv-rows.ts'
import { madeId } from '../values/digest.ts'
import { isoDateOf } from '../values/iso-date.ts'
import { asNumber, present } from '../values/record-fields.ts'
import { type Review, replyQuote, reviewFields, reviewQuotes } from './reviews.ts'

const isOfReviews = byColumns('Package Name', 'Star Rating')

/** Reads each review as a source. It has a row for each change, ordered by the date of it. */
export const playFormat: Format = {
  name: 'play',
  title: 'Google Play reviews',
  description: 'Google Play reviews, CSV',
  sourceIs: "a review with the developer's reply",
  recognises: (_, beginning) => isOfReviews(beginning),
  read: eachFile((file) => foundInRows(file, readRow)),
}

const piece = piecesOf('play_store')
const UNIDENTIFIED = 'The review has neither a link nor a package and a moment of submission.'

function readRow({ values, place, raw }: CsvRow): Found {
  const externalId = reviewId(values)
  if (externalId === undefined) return rejected(UNIDENTIFIED, place, raw)
  const review: Review = {
    externalId,
    rating: asNumber(values.get('Star Rating')),
    title: values.get('Review Title'),
    text: values.get('Review Text'),
    createdAt: momentIn(values, 'Review Submit'),
  }
  const fields = { ...reviewFields(review), ...present({ channelId: values.get('Package Name') }) }
  if (fields.title === undefined)
    return rejected('The review has neither a text nor a rating.', place, raw)
  const reply = values.get('Developer Reply Text')
  const repliedAt = momentIn(values, 'Developer Reply')
  const replies =
    reply === undefined ? [] : [replyQuote(externalId, `${externalId}/reply`, reply, repliedAt)]
  const order = momentIn(values, 'Review Last Update') ?? review.createdAt ?? ''
  const quotes = [...reviewQuotes(review), ...replies]
  return piece(externalId, order, fields, quotes, place)
}

/**
 * Returns the id of a review. A rating without text has no link, so its package, moment and device
 * identify it (and a text, if a program has added one).
 */
function reviewId(values: CsvRow['values']): string | undefined {
  const id = /[?&#:]reviewid=([^&#]+)/i.exec(values.get('Review Link') ?? '')?.[1]
  // A link may contain `gp%3AAOq…` for `gp:AOq…`.
  if (id !== undefined) return decodeUrl(id)
  const submitted = values.has('Review Submit Millis Since Epoch')
    ? momentIn(values, 'Review Submit')
    : undefined
  const name = values.get('Package Name')
  if (name === undefined || submitted === undefined) return undefined
  const moment = `${name}:${Date.parse(submitted)}:${values.get('Device') ?? ''}`
  const words = `${values.get('Review Title') ?? ''}\0${values.get('Review Text') ?? ''}`
  return words === '\0' ? moment : madeId(moment, words)
}

/** The milliseconds are not used if Excel has rounded them, to `1.71456E+12`. */
function momentIn(values: CsvRow['values'], event: string): string | undefined {
  const millis = values.get(`${event} Millis Since Epoch`) ?? ''
  return (
    (/^\d+$/.test(millis) ? isoDateOf(Number(millis) / 1_000) : undefined) ??
    parseIsoDate(values.get(`${event} Date and Time`) ?? '')
  )
}
