// The command `sluice delete`: it deletes a stored thread, or those that a file names.
import { open } from 'node:fs/promises'
import { createInterface } from 'node:readline'
import {
  type Client,
  createClient,
  type DeleteManyOptions,
  type Retry,
  type Service,
  type SourceReference,
} from '@sluice/client'
import { createReferenceParsers, DEFAULT_LIMITS, DeletedItemSchema } from '@sluice/contract'
import {
  type ApiOptions,
  apiOptions,
  counted,
  describeRetry,
  findApi,
  formatNumber,
  listenForStop,
  parseCount,
  UserError,
} from '@sluice/terminal'
import { Command } from 'commander'
import { createAnswerCheck, fetchWithin, findSilence } from '../answers.ts'
import { type RemoveDeps, requireYes } from './sources-commands.ts'

export interface DeleteDeps extends RemoveDeps {
  process: Pick<NodeJS.Process, 'stdin'>
}

interface DeleteOptions extends ApiOptions {
  from?: string
  skip: number
  tenant?: string
  yes?: true
}

/** The API answers a chunk of deletions once all are done, which may take as long as the queue. */
const ANSWER_MS = 600_000
const PROGRESS_MS = 1_000

/** `sluice delete`. Throws UserError if not all threads could be deleted. */
export function deleteCommand(deps: DeleteDeps): Command {
  const command = new Command('delete').description(
    'Deletes stored threads with their messages. Needs a key that may delete',
  )
  return apiOptions(command, 'importer')
    .argument('[service]', 'the service of the thread, such as slack')
    .argument('[external-id]', 'the externalId of the thread')
    .option('--from <file>', 'NDJSON with service and externalId, or id, on each line; - for stdin')
    .option('--skip <number>', 'how many lines an interrupted run has done', parseCount, 0)
    .option('--tenant <name>', "the tenant of the threads, with an operator's key")
    .option('--yes', 'deletes without asking')
    .action(async (service: Service | undefined, externalId: string | undefined, options) => {
      const isNamed = service !== undefined && externalId !== undefined
      if (options.from === undefined ? !isNamed : service !== undefined)
        throw new UserError('Give either a service and an externalId, or --from.')
      const all = isNamed ? [{ service, externalId }] : await readReferences(deps, options)
      await deleteThreads(deps, all, options)
    })
}

async function readReferences(
  deps: DeleteDeps,
  { from = '-', skip }: DeleteOptions,
): Promise<SourceReference[]> {
  const { line: parse } = createReferenceParsers(DEFAULT_LIMITS)
  // Reads Latin-1, to keep all bytes: UTF-8 would be split at U+2028, and lose what is invalid.
  const lines =
    from === '-'
      ? createInterface({ input: deps.process.stdin.setEncoding('latin1') })
      : (await open(from)).readLines({ encoding: 'latin1' })
  const found: SourceReference[] = []
  let number = 0
  for await (const line of lines) {
    number += 1
    if (line.trim() === '') continue
    const parsed = parse(Buffer.from(line, 'latin1'))
    if (!parsed.ok)
      throw new UserError(`Line ${number}: ${parsed.errors[0]?.message} Nothing was deleted.`)
    found.push('id' in parsed.source ? parsed.source.id : parsed.source)
  }
  return found.slice(skip)
}

async function deleteThreads(
  deps: DeleteDeps,
  all: SourceReference[],
  options: DeleteOptions,
): Promise<void> {
  const { tenant, skip, yes } = options
  const target = await findApi(deps, options, tenant === undefined ? 'importer' : 'operator')
  const question = `Delete ${counted(all.length, 'thread')} with all messages? This can't be undone.`
  if (all.length > 0 && !yes) await requireYes(deps, question, 'delete')
  const silence = await findSilence(target.url)
  if (silence !== undefined) throw new UserError(silence)
  const client = createClient({ ...target, fetch: fetchWithin(ANSWER_MS) })
  const counts = { done: 0, deleted: 0, absent: 0, quotes: 0, retries: 0 }
  const onRetry = (retry: Retry) => {
    counts.retries += 1
    deps.show(describeRetry(retry))
  }
  let shownAt = performance.now()
  const { stopping, release } = listenForStop()
  try {
    for await (const result of resultsOf(client, all, { tenant, signal: stopping, onRetry })) {
      counts.done += 1
      if ('problem' in result)
        deps.show(`${JSON.stringify(all[result.index])}: ${result.problem.detail}`)
      else {
        const { outcome, quotes } = checkResult(result)
        counts[outcome] += 1
        counts.quotes += quotes
      }
      if (performance.now() - shownAt < PROGRESS_MS) continue
      shownAt = performance.now()
      deps.show(`${formatNumber(skip + counts.done)} of ${counted(skip + all.length, 'thread')}`)
    }
  } catch (error) {
    if (counts.done === 0 && !stopping.aborted) throw error
    const cause = stopping.aborted ? 'The command was interrupted.' : error
    const reason = cause instanceof Error ? cause.message : String(cause)
    throw new UserError(`${reason} To go on, add --skip ${skip + counts.done}.`)
  } finally {
    release()
  }
  const { done, deleted, absent, quotes, retries } = counts
  const gone = `${counted(deleted, 'thread')} deleted with ${counted(quotes, 'message')}`
  // An attempt whose answer was lost may have deleted threads, which the next one did not find.
  const earlier = retries > 0 && absent > 0 && all.length > 1 ? ', or deleted before a retry' : ''
  deps.print(`${gone}, ${formatNumber(absent)} not stored${earlier}.`)
  if (deleted + absent < done)
    throw new UserError(`${counted(done - deleted - absent, 'thread')} could not be deleted.`)
}

const checkResult = createAnswerCheck(DeletedItemSchema)

/** Deletes a single thread by the route for one thread, whose jobs overtake imports. */
async function* resultsOf(
  client: Client,
  all: readonly SourceReference[],
  options: DeleteManyOptions,
) {
  const [first, ...others] = all
  if (first !== undefined && others.length === 0)
    yield { index: 0, status: 200 as const, ...(await client.deleteSource(first, options)) }
  else yield* client.deleteSources(all, options)
}
