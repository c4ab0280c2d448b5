// The command `sluice export`: writes the stored threads of a tenant in the form in which `sluice
// import` reads them.
import type { ExportPage, Retry, Service } from '@sluice/client'
import { createClient } from '@sluice/client'
import { ID_DIGITS } from '@sluice/store/ids'
import {
  type ApiOptions,
  apiOptions,
  counted,
  describeRetry,
  describeSeconds,
  drawProgress,
  type FindApiDeps,
  findApi,
  listenForStop,
  mebibytes,
  parsePast,
  progressStyle,
  type Target,
  UserError,
} from '@sluice/terminal'
import { Command } from 'commander'
import { fetchWithin, findSilence } from '../answers.ts'
import { type ExportOutput, type ExportProgress, openFile, openStdout } from './export-output.ts'

export interface ExportDeps extends FindApiDeps {
  process: Pick<NodeJS.Process, 'stdout' | 'stderr'>
  show: (line: string) => void
}

type Options = ApiOptions & {
  tenant?: string
  service?: Service
  since?: { text: string; at: Date }
  speaker?: string
  quiet?: true
}

/** Has the same exit code as an interrupted import. */
class InterruptedError extends UserError {
  override readonly exitCode = 4
}

const STDOUT = '-'
/** A page is read in three seconds. The API may answer much later if it is busy. */
const PAGE_WITHIN_MS = 60_000

/** `sluice export`. */
export function exportCommand(deps: ExportDeps): Command {
  const command = new Command('export').description(
    'Writes the stored threads as `sluice import` reads them, and continues an interrupted export',
  )
  return apiOptions(command, 'importer')
    .argument(
      '<file>',
      'NDJSON, compressed if the name ends with .gz or .zst; - is standard output',
    )
    .option('--tenant <name>', "whose threads: for an operator's key")
    .option('--service <service>', 'only threads of this service, such as slack')
    .option(
      '--since <when>',
      'only threads posted since a date, or not longer ago (2h)',
      (text: string) => ({ text, at: parsePast(text) }),
    )
    .option('--speaker <name>', 'only what this person said')
    .option('--quiet', 'prints no progress')
    .addHelpText('after', '\nExit codes: 0 completed, 1 failed, 4 interrupted.')
    .action((file: string, options: Options) => exportTo(deps, file, options))
}

async function exportTo(deps: ExportDeps, file: string, options: Options): Promise<void> {
  const { tenant, service, since, speaker, url, keyFile } = options
  const holder = tenant === undefined ? 'importer' : 'operator'
  const target = await findApi(deps, { url, keyFile }, holder)
  const silence = await findSilence(target.url)
  if (silence !== undefined) throw new UserError(silence)
  const began = performance.now()
  const isFile = file !== STDOUT
  const output = isFile
    ? await openFile(file, [target.url, tenant, service, since?.text, speaker])
    : openStdout(deps.process.stdout)
  const at = { ...output.begin, since: output.begin.since ?? since?.at.toISOString() }
  const stops = listenForStop({ outlivesTerminal: true })
  try {
    await writePages(deps, { target, options, output, at, stopping: stops.stopping })
    await output.complete?.(at)
  } catch (error) {
    if (!stops.stopping.aborted) throw error
    throw new InterruptedError('The export was interrupted. The same command goes on from there.')
  } finally {
    stops.release()
    await output.close?.()
  }
  const time = describeSeconds((performance.now() - began) / 1_000)
  const lines = `${counted(at.lines, 'line')} (a large thread has several)`
  deps.show(`Done: ${lines}, ${mebibytes(at.bytes)} in ${time}${isFile ? `: ${file}` : ''}`)
}

interface Pages {
  target: Target
  options: Options
  output: ExportOutput
  /** How far the export has got. It changes with each page that is written. */
  at: ExportProgress
  stopping: AbortSignal
}

/** Reads a page while the page before it is written. */
async function writePages(deps: ExportDeps, { target, options, output, at, stopping }: Pages) {
  const { tenant, service, speaker, quiet } = options
  const { stderr } = deps.process
  const client = createClient({ ...target, fetch: fetchWithin(PAGE_WITHIN_MS) })
  const style = progressStyle({ quiet }, stderr.isTTY === true)
  using display = drawProgress({ style, view: () => viewOf(at), stderr, print: deps.show })
  if (at.after !== undefined) display.say(`Going on after ${counted(at.lines, 'line')}.`)
  const onRetry = (retry: Retry) => display.say(describeRetry(retry))
  const since = at.since === undefined ? undefined : new Date(at.since)
  const ask = (after: string | undefined) => {
    const query = { tenant, service, since, speaker, after }
    const page = client.exportPage({ ...query, signal: stopping, onRetry })
    // If writing fails, nobody awaits the page that is read meanwhile.
    page.catch(() => {})
    return page
  }
  for (let coming = ask(at.after), isLast = false; !isLast; ) {
    const { ndjson, next } = checked(await coming)
    isLast = next === undefined
    if (!isLast) coming = ask(next)
    // An empty file must be a valid one, too.
    if (ndjson !== '' || (isLast && at.bytes === 0)) at.bytes += await output.write(ndjson)
    at.lines += ndjson.split('\n').length - 1
    at.after = next
    if (!isLast) await output.save?.(at)
  }
}

/** Refuses a text that is no page of an export. */
function checked(page: ExportPage): ExportPage {
  const { ndjson } = page
  if (ndjson === '' || (ndjson.startsWith('{') && ndjson.endsWith('}\n'))) return page
  throw new UserError('The answer is not one of this version of Sluice.')
}

/** Pages follow ids, which are hashes: the beginning of an id says how many come before it. */
function shareOf([first = '-', second = '-']: string = ''): number {
  return (
    (ID_DIGITS.indexOf(first) * ID_DIGITS.length + ID_DIGITS.indexOf(second)) /
    ID_DIGITS.length ** 2
  )
}

function viewOf({ lines, bytes, after }: ExportProgress) {
  const share = shareOf(after)
  const line = `exporting ${Math.floor(share * 100)} %, ${mebibytes(bytes)}, ${counted(lines, 'line')}`
  return { line, share, json: { share, lines, bytes } }
}
