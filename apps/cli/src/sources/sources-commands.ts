// The commands `sluice list` and `sluice get`: they show stored threads in a form for people, or as
// JSON.
import type {
  ListedSource,
  ListOptions as ListOfSources,
  PageOptions,
  Service,
  SourceName,
  SourcePage,
} from '@sluice/client'
import { createClient, pagesOf } from '@sluice/client'
import { SourceListSchema, SourcePageSchema } from '@sluice/contract'
import {
  type ApiOptions,
  apiOptions,
  counted,
  type FindApiDeps,
  findApi,
  formatMoment,
  parseCount,
  parsePast,
  printAnswer,
  shortened,
  tableLines,
  UserError,
} from '@sluice/terminal'
import { Command } from 'commander'
import { createAnswerCheck, fetchWithin, findSilence } from '../answers.ts'

export interface SourcesDeps extends FindApiDeps {
  print: (line: string) => void
}

/** The dependencies of a command that removes something. */
export interface RemoveDeps extends SourcesDeps {
  /** Asks the user. Returns false if nobody can answer. */
  confirm: (question: string) => Promise<boolean>
  show: (line: string) => void
}

/** Asks before something is removed. @throws {UserError} if the user does not agree. */
export async function requireYes(
  { confirm }: Pick<RemoveDeps, 'confirm'>,
  question: string,
  act: 'delete' | 'erase',
): Promise<void> {
  if (!(await confirm(question)))
    throw new UserError(`Nothing was ${act}d. Add --yes to ${act} without being asked.`)
}

/** The API returns at most this number of sources on a page. */
const MOST_OF_PAGE = 1_000
const DEFAULT_SHOWN = 50

type ListOptions = ApiOptions & { service?: Service; since?: Date; limit: number; json?: true }

export function listCommand(deps: SourcesDeps): Command {
  const command = new Command('list').description(
    'Lists stored threads, those first that were accepted last',
  )
  return apiOptions(command, 'importer')
    .option('--service <service>', 'only threads of this service, such as slack')
    .option(
      '--since <when>',
      'only those first accepted since a date, or not longer ago (2h)',
      parsePast,
    )
    .option('--limit <number>', 'how many threads', parseCount, DEFAULT_SHOWN)
    .option('--json', 'as JSON')
    .action((options: ListOptions) => list(deps, options))
}

async function list(
  deps: SourcesDeps,
  { service, since, limit, json, ...api }: ListOptions,
): Promise<void> {
  const client = await openClient(deps, api)
  const sources: ListedSource[] = []
  let after: string | undefined
  do {
    const page = { limit: Math.min(limit - sources.length, MOST_OF_PAGE), after }
    const found = await client.listSources({ service, since, ...page })
    sources.push(...found.sources)
    after = found.next
  } while (after !== undefined && sources.length < limit)
  const more =
    after === undefined ? [] : [`Older ones are left out: --limit ${limit * 10} shows more.`]
  printAnswer(deps, { json }, sources, (found) => [...listLines(found), ...more])
}

const COLUMNS = ['ACCEPTED', 'SERVICE', 'QUOTES', 'WORDS', 'EXTERNAL ID', 'TITLE']
const SHOWN_TITLE = 60

/** An externalId is never cut, because `sluice get` needs the whole. */
function listLines(sources: readonly ListedSource[]): string[] {
  if (sources.length === 0) return ['No such thread is stored.']
  const rows = sources.map(({ acceptedAt, service, quoteCount, wordCount, externalId, title }) => {
    const counts = [String(quoteCount), String(wordCount)]
    return [
      formatMoment(new Date(acceptedAt)),
      service,
      ...counts,
      externalId,
      shortened(title, SHOWN_TITLE),
    ]
  })
  return tableLines([COLUMNS, ...rows])
}

type GetOptions = ApiOptions & { json?: true }

/**
 * `sluice get`.
 * @throws {UserError} if the thread is not stored.
 */
export function getCommand(deps: SourcesDeps): Command {
  const command = new Command('get').description('Shows a stored thread with all its messages')
  return apiOptions(command, 'importer')
    .argument('<service>', 'the service of the thread, such as slack')
    .argument('<external-id>', 'the externalId of the thread')
    .option('--json', 'as JSON')
    .action((service: Service, externalId: string, options: GetOptions) =>
      get(deps, { service, externalId }, options),
    )
}

async function get(deps: SourcesDeps, name: SourceName, options: GetOptions): Promise<void> {
  const client = await openClient(deps, options)
  const pages: SourcePage[] = []
  for await (const page of pagesOf(client, name)) pages.push(page)
  const source = pages.at(-1)?.source
  if (source === undefined)
    throw new UserError(`No thread ${name.externalId} of ${name.service} is stored.`)
  const quotes = pages.flatMap((page) => page.quotes)
  printAnswer(deps, options, { source, quotes }, threadLines)
}

function threadLines({ source, quotes }: Pick<SourcePage, 'source' | 'quotes'>): string[] {
  const { id, title, service, externalId, wordCount, createdAt, url, description } = source
  const counts = [counted(quotes.length, 'message'), counted(wordCount, 'word')]
  const speakers = new Map(
    quotes.map((quote) => [quote.externalId, quote.speaker ?? quote.externalId]),
  )
  return [
    title,
    `${service} ${externalId}: ${formatMoment(new Date(createdAt))}, ${counts.join(', ')}`,
    `Id: ${id}`,
    ...(url === undefined ? [] : [url]),
    ...(description === null ? [] : textLines(description)),
    ...quotes.flatMap(({ speaker, createdAt: at, replyingTo, text }) => {
      const date = at === undefined ? '' : `, ${formatMoment(new Date(at))}`
      const parent =
        replyingTo === undefined ? '' : `, to ${speakers.get(replyingTo) ?? replyingTo}`
      return [
        '',
        `${speaker ?? 'Unknown'}${date}${parent}`,
        ...textLines(text).map((line) => `  ${line}`),
      ]
    }),
  ]
}

function textLines(text: string): string[] {
  return text.replaceAll('\t', '  ').split(/\r\n|[\r\n]/)
}

/**
 * Opens a client with one retry: people wait for the answer, so an unavailable service is reported
 * soon.
 */
async function openClient(deps: SourcesDeps, options: ApiOptions) {
  const target = await findApi(deps, options, 'importer')
  const client = createClient({ ...target, maxRetries: 1, fetch: fetchWithin() })
  const silence = await findSilence(target.url)
  if (silence !== undefined) throw new UserError(silence)
  return {
    listSources: async (page: ListOfSources) => checkList(await client.listSources(page)),
    async getSource(name: SourceName | string, page: PageOptions) {
      const found = await client.getSource(name, page)
      return found === undefined ? undefined : checkPage(found)
    },
  }
}

const checkList = createAnswerCheck(SourceListSchema)
const checkPage = createAnswerCheck(SourcePageSchema)
