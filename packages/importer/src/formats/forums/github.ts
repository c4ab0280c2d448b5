// Issues of GitHub with their comments, as its REST API, its command line `gh` and common backup programs write them.
import { parseIsoDate } from '@sluice/contract'
import type { Format, Found, Piece, Place, QuoteInput, SourceFields } from '../format.ts'
import { eachFile, rejected, skipped } from '../format.ts'
import { byShape } from '../read/json-beginning.ts'
import { foundIn, type JsonRecord, readJson, recordsAndLists } from '../read/json-records.ts'
import { asId, asObject, asObjects, asText, type JsonObject, present } from '../values/record-fields.ts'

const RECORDS = recordsAndLists('issues', 'pulls', 'issue_comments', 'items')

/** Matches `https://github.com/OWNER/REPO/issues/N`, `https://api.github.com/repos/OWNER/REPO/issues/N`, and `pull`. */
const ISSUE_URL = /\/([^/]+)\/([^/]+)\/(?:issues|pull|pulls)\/(\d+)(?:$|[/?#])/
const COMMENT_URL = /#issuecomment-(\d+)$/

/**
 * Reads each issue or pull request as a source `OWNER/REPO#N`. Its own text is the first quote. Comments stand in their
 * issue or name it. The number in a comment's URL is its id, because programs write different values into `id`.
 */
export const githubFormat: Format = {
  name: 'github',
  description: 'GitHub issues with comments, JSON',
  recognises: byShape(({ members }) =>
    ['', '[].', 'issues[].', 'items[].', 'issue_comments[].'].some((at) => {
      const has = (name: string) => members.has(`${at}${name}`)
      const isIssue = has('number') && has('title') && (has('html_url') || has('url'))
      return (isIssue && (has('user') || has('author') || has('body'))) || has('issue_url')
    }),
  ),
  read: eachFile((file) => foundIn(readJson(file, RECORDS), readRecord)),
}

function readRecord({ value, place }: JsonRecord): Found | Found[] {
  const record = asObject(value) ?? {}
  const issueUrl = asText(record.issue_url) ?? asText(record.issue)
  if (issueUrl !== undefined) return readComment(record, issueUrl, place)
  const externalId = issueId(asText(record.html_url) ?? asText(record.url))
  if (externalId !== undefined && asText(record.title) !== undefined) return readIssue(record, externalId, place)
  const reason = 'The record is neither an issue with title and URL nor a comment with the URL of its issue.'
  return rejected(reason, place, value)
}

function readIssue(issue: JsonObject, externalId: string, place: Place): Found[] {
  const createdAt = dateOf(issue)
  const fields = present({ title: asText(issue.title), url: asText(issue.html_url) ?? asText(issue.url), createdAt })
  const text = asText(issue.body)
  const quotes = text === undefined ? [] : [toQuote(issue, externalId, text)]
  const comments = commentsIn(issue).map((comment) => readCommentOf(externalId, comment, place))
  const reviews = asObjects(issue.reviews).map(() => skipped('reviews of pull requests', place))
  return [piece(externalId, createdAt ?? '', fields, quotes, place), ...comments, ...reviews]
}

/** The REST API only counts comments. `gh`, GraphQL and python-github-backup write them. */
function commentsIn({ comments, comment_data }: JsonObject): readonly JsonObject[] {
  return [comments, asObject(comments)?.nodes, comment_data].flatMap(asObjects)
}

function readComment(comment: JsonObject, issueUrl: string, place: Place): Found {
  const externalId = issueId(issueUrl)
  if (externalId !== undefined) return readCommentOf(externalId, comment, place)
  return rejected(`The URL of the comment's issue can't be read: ${issueUrl}.`, place, comment)
}

function readCommentOf(source: string, comment: JsonObject, place: Place): Found {
  const text = asText(comment.body)
  if (text === undefined) return skipped('comments without text', place)
  const quote = toQuote(comment, commentId(comment), text)
  return piece(source, dateOf(comment) ?? '~', { placeholderTitle: source }, [quote], place)
}

function piece(externalId: string, order: string, fields: SourceFields, quotes: QuoteInput[], place: Place): Piece {
  return { kind: 'piece', service: 'custom', externalId, order, fields, quotes, place }
}

function toQuote(record: JsonObject, externalId: string | undefined, text: string): QuoteInput {
  const author = record.user ?? record.author
  const speaker = asText(asObject(author)?.login) ?? asText(author)
  return { text, ...present({ externalId, speaker, createdAt: dateOf(record) }) }
}

function commentId({ html_url, url, id }: JsonObject): string | undefined {
  return COMMENT_URL.exec(asText(html_url) ?? asText(url) ?? '')?.[1] ?? asId(id)
}

function issueId(url: string | undefined): string | undefined {
  const [, owner, repository, number] = ISSUE_URL.exec(url ?? '') ?? []
  return number && `${owner}/${repository}#${number}`
}

function dateOf({ created_at, createdAt }: JsonObject): string | undefined {
  return parseIsoDate(asText(created_at) ?? asText(createdAt) ?? '')
}
