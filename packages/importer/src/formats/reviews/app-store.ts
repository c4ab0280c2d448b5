// Reads reviews of the App Store, in the form in which the App Store Connect API lists them:
// `customerReviews`, with `include=response`.
import {
  eachFile,
  type Format,
  type Found,
  type Place,
  piecesOf,
  rejected,
  skipped,
} from '../format.ts'
import { byShape } from '../read/json-beginning.ts'
import { foundIn, readJsonFile, recordsAndLists } from '../read/json-records.ts'
import { asIsoDate } from '../values/iso-date.ts'
import {
  asId,
  asNumber,
  asObject,
  asObjects,
  asText,
  type JsonObject,
} from '../values/record-fields.ts'
import { type Review, replyQuote, reviewFields, reviewQuotes } from './reviews.ts'

const piece = piecesOf('app_store')
const RECORDS = recordsAndLists('data', 'included')
const REVIEW = 'customerReviews'
const RESPONSE = 'customerReviewResponses'

/** While a file is read, at most this number of reviews wait for their replies: about 30 MB. */
const AWAITED_REPLIES = 200_000

/** Reviews' ids by their replies' ids, because a reply does not always name its review. */
type AwaitedReplies = Map<string, string>

/** Reads each review as a source. A file may have several pages, or a list of pages. */
export const appStoreFormat: Format = {
  name: 'app-store',
  title: 'App Store reviews',
  description: 'App Store Connect customerReviews, JSON',
  sourceIs: "a review with the developer's reply",
  recognises: byShape(({ members }) =>
    ['', '[].', 'data.', 'data[].', '[].data[].'].some((at) =>
      ['rating', 'body'].every((name) => members.has(`${at}attributes.${name}`)),
    ),
  ),
  read: eachFile((file) => {
    const awaited: AwaitedReplies = new Map()
    return foundIn(readJsonFile(file, RECORDS), ({ value, place }) =>
      resourcesIn(value).map((resource) => readResource(resource, place, awaited)),
    )
  }),
}

function resourcesIn(value: unknown): JsonObject[] {
  const { data, included } = asObject(value) ?? {}
  if (data === undefined) return [asObject(value) ?? {}]
  return [...(Array.isArray(data) ? asObjects(data) : asObjects([data])), ...asObjects(included)]
}

function readResource(resource: JsonObject, place: Place, awaited: AwaitedReplies): Found {
  const id = asId(resource.id)
  if (id !== undefined && resource.type === REVIEW) return readReview(resource, id, place, awaited)
  if (id !== undefined && resource.type === RESPONSE) return readReply(resource, id, place, awaited)
  if (id !== undefined) return skipped('records other than reviews and replies', place)
  return rejected('The record is neither a review nor a reply.', place, resource)
}

function readReview(
  resource: JsonObject,
  externalId: string,
  place: Place,
  awaited: AwaitedReplies,
): Found {
  const attributes = asObject(resource.attributes) ?? {}
  const reply = relatedId(resource, 'response')
  if (reply !== undefined && awaited.size < AWAITED_REPLIES) awaited.set(reply, externalId)
  const review: Review = {
    externalId,
    rating: asNumber(attributes.rating),
    title: asText(attributes.title),
    text: asText(attributes.body),
    createdAt: asIsoDate(attributes.createdDate),
  }
  const fields = reviewFields(review)
  if (fields.title === undefined)
    return rejected('The review has neither a text nor a rating.', place, resource)
  const quotes = reviewQuotes(review, asText(attributes.reviewerNickname))
  return piece(externalId, review.createdAt ?? '', fields, quotes, place)
}

function readReply(resource: JsonObject, id: string, place: Place, awaited: AwaitedReplies): Found {
  const attributes = asObject(resource.attributes) ?? {}
  const review = relatedId(resource, 'review') ?? awaited.get(id)
  awaited.delete(id)
  const text = asText(attributes.responseBody)
  if (review === undefined) return rejected(UNKNOWN_REVIEW, place, resource)
  if (text === undefined) return skipped('replies without text', place)
  const createdAt = asIsoDate(attributes.lastModifiedDate)
  const fields = { placeholderTitle: `Review ${review}` }
  const quotes = [replyQuote(review, id, text, createdAt)]
  return piece(review, createdAt ?? '~', fields, quotes, place)
}

const UNKNOWN_REVIEW = 'The reply names no review, and no review before it names the reply.'

function relatedId(resource: JsonObject, name: string): string | undefined {
  const relation = asObject(asObject(resource.relationships)?.[name])
  return asId(asObject(relation?.data)?.id)
}
