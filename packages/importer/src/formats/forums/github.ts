// Reads GitHub's issues with their comments, from the REST API, `gh`, GraphQL, migration archives
// and common backup programs.
import type { Format, Found, FoundLists, InputFile, Place, QuoteInput } from '../format.ts'
import { ownsFolder, piecesOf, rejected, skipped } from '../format.ts'
import { fileBeside } from '../read/files-beside.ts'
import { byShape, jsonShape } from '../read/json-beginning.ts'
import { foundIn, readJsonFile, recordsAndLists } from '../read/json-records.ts'
import { readBeginning } from '../read/utf8-chunks.ts'
import { nodesIn, nodesOf } from '../values/graphql.ts'
import { asIsoDate } from '../values/iso-date.ts'
import {
  asId,
  asObject,
  asText,
  asTexts,
  type JsonObject,
  present,
} from '../values/record-fields.ts'

const piece = piecesOf('custom')
const LISTS = ['issues', 'pulls', 'issue_comments', 'items']
const RECORDS = recordsAndLists(...LISTS)
/** Comments may have a list beside the issues. Those within an issue belong to it. */
const WITH_COMMENTS = recordsAndLists(...LISTS, 'comments', 'pull_requests')

/**
 * Matches `https://github.com/OWNER/REPO/issues/N`,
 * `https://api.github.com/repos/OWNER/REPO/issues/N`, and `pull`.
 */
const ISSUE_URL = /\/([^/]+)\/([^/]+)\/(?:issues|pull|pulls)\/(\d+)(?:$|[/?#])/
const COMMENT_URL = /#issuecomment-(\d+)$/

const REVIEWS = 'reviews of pull requests, and comments on their lines'

/** Repositories and uploads, which backups have beside lists of issues. */
const BESIDE = /(?:^|\/)(?:attachments|[^/]+\.git)\//
/** The lists of a migration archive. */
const ARCHIVED = /(?:^|\/)[a-z_]+_\d{6}\.json$/
const PARTS = /^(?:[a-z_]+_0\d{5}|schema)\.json$/
const ARCHIVED_ISSUES = /(?:^|\/)(?:issues|pull_requests|issue_comments)_\d{6}\.json$/

/** Prefixes of records in a list, or in a list of pages (`gh api --paginate --slurp`). */
const PAGES = [
  ...['issues[].', 'items[].', 'issue_comments[].'],
  ...['data.repository.issue.', 'data.repository.pullRequest.'],
  ...['search', 'repository.issues', 'repository.pullRequests'].flatMap((list) =>
    ['nodes[]', 'edges[].node'].map((one) => `data.${list}.${one}.`),
  ),
]
const PLACES = ['', '[].', '[][].', ...PAGES, ...PAGES.map((page) => `[].${page}`)]

const isOfIssues = byShape(({ members }) => PLACES.some((at) => isRecordAt(members, at)))

function isRecordAt(members: ReadonlySet<string>, at: string): boolean {
  const has = (name: string) => members.has(`${at}${name}`)
  const isIssue =
    (has('number') || has('repository')) && has('title') && (has('html_url') || has('url'))
  return (
    (isIssue && (has('user') || has('author') || has('body'))) ||
    has('issue_url') ||
    has('pull_request_url')
  )
}

/**
 * Reads each issue or pull request as a source `OWNER/REPO#N`. Its own text is the first quote.
 * Comments are in their issue, or name it. The number in a comment's URL is its id, because
 * programs write different values into `id`.
 */
export const githubFormat: Format = {
  name: 'github',
  title: 'GitHub',
  description: 'GitHub issues with comments, JSON',
  sourceIs: 'an issue or a pull request, `OWNER/REPO#N`',
  owns: ownsFolder({ parts: PARTS, uploads: BESIDE }),
  wrote: (beginning) => beginning.includes('"https://api.github.com/'),
  recognises: (file, beginning) => ARCHIVED_ISSUES.test(file.path) || isOfIssues(file, beginning),
  async *read(files) {
    const isArchive = files.some(({ path }) => ARCHIVED_ISSUES.test(path))
    let warning: Found | undefined
    let hasComments = false
    for (const file of files)
      if (isArchive ? !ARCHIVED.test(file.path) : BESIDE.test(file.path))
        yield [fileBeside(file, 'repositories, and lists without issues')]
      else
        for await (const found of readFile(file)) {
          warning ??= found.find(({ kind }) => kind === 'warning')
          hasComments ||= found.some((one) => one.kind === 'piece' && !one.fields.title)
          yield found.filter(({ kind }) => kind !== 'warning')
        }
    // Comments may be in a file of their own.
    if (warning !== undefined && !hasComments) yield [warning]
  },
}

async function* readFile(file: InputFile): FoundLists {
  const { members } = jsonShape(await readBeginning(file))
  const hasLists = LISTS.some((list) => members.has(`${list}[].number`))
  let [items, repository, list] = [0, '', '/issues']
  const records = readJsonFile(file, hasLists ? WITH_COMMENTS : RECORDS)
  yield* foundIn(records, ({ path, value, place }) => {
    if (path === '/*') items += 1
    const { issue_url, html_url, url } = asObject(value) ?? {}
    if (issue_url !== undefined) list = '/comments'
    repository ||= issueId(asText(issue_url ?? html_url ?? url))?.replace(/#\d+$/, '') ?? ''
    const page = pageOf(value)
    return Array.isArray(page)
      ? page.flatMap((record) => readRecord(record, place))
      : readRecord(value, place)
  })
  const hasMore = PAGE_SIZES.has(items)
  const place = { path: file.path }
  if (items > 0)
    yield [{ kind: 'page', list: repository + list, items, hasMore, isGuess: true, place }]
}

/** The API and `gh` list 30 issues if nothing else is asked for. A page of the API has up to 100. */
const PAGE_SIZES = new Set([30, 100])

/** Returns the records of a page: a list, the result of a search, or an answer of GraphQL. */
function pageOf(value: unknown): unknown {
  const { items, issues, data } = asObject(value) ?? {}
  if (Array.isArray(value)) return value
  return items ?? issues ?? (data === undefined ? undefined : nodesIn(data, 'title'))
}

function readRecord(value: unknown, place: Place): Found | Found[] {
  const record = asObject(value) ?? {}
  const { issue_url, issue, pull_request, pull_request_url, event, commit_id, type } = record
  if (asText(event) !== undefined && event !== 'commented')
    return skipped('events, such as of who closed an issue', place)
  // Gitea writes both URLs into each comment, and leaves one of them empty.
  const isComment = COMMENT_URL.test(asText(record.html_url) ?? '')
  const isOfPull = asText(pull_request_url) !== undefined && !isComment
  if (isOfPull || String(type).startsWith('pull_request_review')) return skipped(REVIEWS, place)
  const [issueUrl] = asTexts([issue_url, issue, pull_request, pull_request_url])
  if (issueUrl !== undefined) {
    const source = issueId(issueUrl)
    return source === undefined
      ? rejected(`The URL of the comment's issue can't be read: ${issueUrl}.`, place, record)
      : readComment(source, record, place)
  }
  const externalId = issueId(asText(record.html_url) ?? asText(record.url))
  if (externalId !== undefined && asText(record.title) !== undefined)
    return readIssue(record, externalId, place)
  if (asText(commit_id) !== undefined) return skipped('comments on commits', place)
  if (asText(type) !== undefined) return skipped('records other than issues and comments', place)
  const reason =
    'The record is neither an issue with title and URL nor a comment with the URL of its issue.'
  return rejected(reason, place, value)
}

function readIssue(issue: JsonObject, externalId: string, place: Place): Found[] {
  const createdAt = dateOf(issue)
  const fields = present({
    title: asText(issue.title),
    url: asText(issue.html_url) ?? asText(issue.url),
    createdAt,
  })
  const text = asText(issue.body)
  const quotes = text === undefined ? [] : [toQuote(issue, externalId, text)]
  const comments = commentsIn(issue).map((comment) => readComment(externalId, comment, place))
  const reviews = [issue.reviews, issue.reviewThreads]
    .flatMap(nodesOf)
    .map(() => skipped(REVIEWS, place))
  const order = `${createdAt ?? ''}${versionOf(issue, '')}`
  const isPart = asObject(asObject(issue.comments)?.pageInfo)?.hasNextPage === true
  const missing: Found[] = []
  if (isPart) missing.push(skipped('issues whose comments are not all in the file', place))
  if (typeof issue.comments === 'number' && issue.comments > comments.length)
    missing.push({ kind: 'warning', reason: ONLY_COUNTED, place })
  return [piece(externalId, order, fields, quotes, place), ...comments, ...reviews, ...missing]
}

const ONLY_COUNTED =
  'issues that only count their comments (import what repos/OWNER/REPO/issues/comments answers, too)'

/** The REST API only counts them, but `gh`, GraphQL and python-github-backup write them. */
function commentsIn({ comments, comment_data, timelineItems }: JsonObject): readonly JsonObject[] {
  const inTimeline = nodesOf(timelineItems).filter(
    ({ __typename, body }) => __typename !== 'PullRequestReview' && asText(body) !== undefined,
  )
  return [comments, comment_data, inTimeline].flatMap(nodesOf)
}

function readComment(source: string, comment: JsonObject, place: Place): Found {
  const text = asText(comment.body)
  if (text === undefined) return skipped('comments without text', place)
  const quote = toQuote(comment, commentId(comment), text)
  const order = `${dateOf(comment) ?? '~'}${versionOf(comment, quote.externalId ?? '')}`
  return piece(source, order, { placeholderTitle: source }, [quote], place)
}

/** The copy that was edited last replaces the others. */
function versionOf({ updated_at, updatedAt }: JsonObject, id: string): string {
  const version = asText(updated_at) ?? asText(updatedAt)
  return version === undefined ? '' : `/${id.padStart(20, '0')}/${version}`
}

function toQuote(record: JsonObject, externalId: string | undefined, text: string): QuoteInput {
  const author = record.user ?? record.author
  // In a migration archive, an author is the URL of the author's page.
  const speaker = asText(asObject(author)?.login) ?? asText(author)?.replace(/^https?:\/\/.*\//, '')
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
  return asIsoDate(created_at) ?? asIsoDate(createdAt)
}
