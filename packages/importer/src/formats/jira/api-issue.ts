// Reads issues from answers of both versions of Jira's REST API: from searches, or single ones.
import {
  type Found,
  type Place,
  piecesOf,
  type QuoteInput,
  rejected,
  withSkipped,
} from '../format.ts'
import type { JsonShape } from '../read/json-beginning.ts'
import { isoDateIn } from '../values/iso-date.ts'
import {
  asId,
  asNumber,
  asObject,
  asObjects,
  asText,
  asTexts,
  type JsonObject,
  present,
} from '../values/record-fields.ts'
import { asName } from '../values/typography.ts'
import { withNames, wordsIn } from './document.ts'

const piece = piecesOf('custom')
const PLACES = ['', '[].', 'issues[].', '[].issues[].']
const FIELDS = ['summary', 'issuetype', 'comment']

/** Recognises an answer by the names in its first issue. */
export function isAnswer({ members }: JsonShape): boolean {
  return PLACES.some(
    (at) => members.has(`${at}key`) && FIELDS.some((name) => members.has(`${at}fields.${name}`)),
  )
}

/** Reads an issue, or the issues of an answer. */
export function readAnswer(value: unknown, place: Place): Found[] {
  const { issues, key, fields, self } = asObject(value) ?? {}
  if (Array.isArray(issues)) return issues.flatMap((one) => readAnswer(one, place))
  const id = asText(key)
  const issue = asObject(fields)
  if (id === undefined || issue === undefined)
    return [rejected('an issue without `key` or `fields`', place, value)]
  const { comments, total } = asObject(issue.comment) ?? {}
  const author = issue.reporter ?? issue.creator
  const names = namesOf([author, issue.assignee, ...asObjects(comments).map((one) => one.author)])
  const answers = asObjects(comments).map((one) => toQuote(one, [one.body], asId(one.id), names))
  const own = toQuote({ ...issue, author }, [issue.description, issue.environment], id, names)
  const files = asTexts(asObjects(issue.attachment).map(({ filename }) => filename))
  // A picture in the description is also in the list of files.
  const attachments = files.length > 0 ? files : (own.attachments ?? [])
  const quotes =
    own.text === '' && attachments.length === 0 ? answers : [{ ...own, attachments }, ...answers]
  const project = asObject(issue.project)
  const named = {
    title: asText(issue.summary),
    channelName: asText(project?.name),
    channelId: asText(project?.key),
  }
  const ofSource = {
    placeholderTitle: id,
    ...present({ ...named, createdAt: own.createdAt, url: pageOf(self, id) }),
  }
  const order = isoDateIn(asText(issue.updated)) ?? ''
  const found = piece(`jira/${id}`, order, ofSource, quotes, place)
  const isCut = (asNumber(total) ?? 0) > answers.length
  return withSkipped(found, leftOut(issue, isCut), place)
}

/** A search leaves out comments unless they are asked for, and cuts long lists. */
function leftOut({ comment, worklog }: JsonObject, isCut: boolean): string[] {
  const logged = asObjects(asObject(worklog)?.worklogs).filter(
    (log) => wordsIn(log.comment).text !== '',
  )
  const missing =
    comment === undefined && 'issues whose comments are not in the file (search with fields=*all)'
  const cut =
    isCut &&
    'issues whose comments are not all in the file (fetch each alone, /rest/api/2/issue/KEY)'
  return [
    ...[missing, cut].filter((reason) => reason !== false),
    ...logged.map(() => 'comments of work logs'),
  ]
}

/** Returns people's names by their ids and logins. */
function namesOf(people: readonly unknown[]): Map<string, string> {
  const named = asObjects(people).flatMap(({ accountId, name, displayName }) =>
    asTexts([accountId, name]).map((id): [string, string] => [id, asName(displayName) ?? id]),
  )
  return new Map(named)
}

function toQuote(
  { author, created, parentId }: JsonObject,
  parts: readonly unknown[],
  externalId: string | undefined,
  names: ReadonlyMap<string, string>,
): QuoteInput {
  const { displayName, name, accountId } = asObject(author) ?? {}
  const read = parts.map(wordsIn)
  const text = withNames(asTexts(read.map((one) => one.text)).join('\n'), names)
  const attachments = read.flatMap((one) => one.attachments)
  const speaker = asName(displayName) ?? asName(name) ?? asText(accountId)
  const createdAt = isoDateIn(asText(created))
  return {
    text,
    ...present({ externalId, speaker, createdAt, replyingTo: asId(parentId), attachments }),
  }
}

/** Returns the page that people see, unless the answer has the address that apps use. */
function pageOf(self: unknown, key: string): string | undefined {
  const [site = '', path] = asText(self)?.split('/rest/api/', 2) ?? []
  return path === undefined || site.startsWith('https://api.atlassian.com/')
    ? undefined
    : `${site}/browse/${key}`
}
