// Recognises files with GitHub's issues and comments by their beginnings.
import { byShape } from '../read/json-beginning.ts'

/** Prefixes of records in a list, or in a list of pages (`gh api --paginate --slurp`). */
const PAGES = [
  'issues[].',
  'items[].',
  'issue_comments[].',
  'data.search.nodes[].',
  'data.repository.issues.nodes[].',
  'data.repository.pullRequests.nodes[].',
  'data.repository.issue.',
  'data.repository.pullRequest.',
]
const PLACES = ['', '[].', '[][].', ...PAGES, ...PAGES.map((page) => `[].${page}`)]

/** Returns whether the beginning of a file has an issue or a comment. */
export const isOfIssues = byShape(({ members }) => PLACES.some((at) => isRecord(members, at)))

function isRecord(members: ReadonlySet<string>, at: string): boolean {
  const has = (name: string) => members.has(`${at}${name}`)
  const isIssue =
    (has('number') || has('repository')) && has('title') && (has('html_url') || has('url'))
  return (
    (isIssue && (has('user') || has('author') || has('body'))) ||
    has('issue_url') ||
    has('pull_request_url')
  )
}
