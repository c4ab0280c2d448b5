// The command `sluice import`: its options, and what it prints.
import { tmpdir } from 'node:os'
import {
  type ApiOptions,
  apiOptions,
  createPrinter,
  type FindApiDeps,
  findApi,
  findDashboard,
  jsonText,
  parseCount,
  stopRequests,
} from '@sluice/terminal'
import { Command, InvalidArgumentError } from 'commander'
import type { RejectedRecord } from './account/ledger.ts'
import { orderOf } from './formats/csv/csv-values.ts'
import { formats } from './formats/formats.ts'
import { isTimeZone } from './formats/values/iso-date.ts'
import type { ImportRequest } from './import-request.ts'
import { Interrupted } from './import-request.ts'
import { runImport } from './run-import.ts'
import { type ProgressStyle, showProgress } from './show/progress.ts'
import { EXIT_CODES, type Summary, summaryLines, summaryObject } from './show/summary.ts'

interface ImportCommandDeps extends FindApiDeps {
  /** Prints for programs, on standard output. */
  say: (line: string) => void
  process: Pick<NodeJS.Process, 'stdin' | 'stderr' | 'exitCode' | 'on' | 'off'>
}

interface Output {
  json?: true | undefined
  quiet?: true | undefined
}

type Options = ApiOptions & Output & Omit<ImportRequest, 'names'>

/** The defaults that the help does not show. */
const DEFAULTS = { map: new Map<string, string>(), set: new Map<string, string>(), idPrefix: '' }
const DEFAULT_MAX_ERRORS = 100
const DEFAULT_CONCURRENCY = 4

/** Creates the command `import`. It sets the exit code itself, also if an option can't be used. */
export function importCommand(deps: ImportCommandDeps): Command {
  const command = new Command('import')
    .description('Imports the threads of export files, and goes on where an interrupted import stopped')
    .argument('<files...>', 'files, folders, zip archives, .gz and .zst files; - is standard input')
  return apiOptions(command, 'importer')
    .option('--format <name>', 'the format of the files, if it is not recognised')
    .option('--encoding <name>', 'the encoding of files that are not Unicode: windows-1252, shift_jis', parseEncoding)
    .option('--dry-run', 'reads and checks everything, sends nothing, and needs no service')
    .option('--id-prefix <text>', 'stands before the externalId of each source: for accounts that share a tenant')
    .option('--max-errors <number>', 'gives up after more rejected records; none: never', parseMost, DEFAULT_MAX_ERRORS)
    .option('--rejected <path>', 'the file of rejected records (default: FILE.rejected.ndjson, then -2, -3)')
    .option('--state-dir <path>', 'the folder of the checkpoint and the rejected file (default: that of FILE)')
    .option('--no-checkpoint', 'keeps no FILE.sluice-checkpoint, so an interrupted import begins anew')
    .option('--concurrency <number>', 'the most batches in flight', parseCount, DEFAULT_CONCURRENCY)
    .option('--temp-dir <path>', 'where large inputs are sorted', tmpdir())
    .option('--json', 'prints progress and summary as JSON lines')
    .option('--quiet', 'prints no progress, and a summary only if something went wrong')
    .option('--map <field=column>', 'CSV, NDJSON: takes a field from another column; repeatable', parsePair)
    .option('--set <field=value>', 'CSV, NDJSON: gives all threads a value; repeatable', parsePair)
    .option('--group-by <column>', 'CSV: the column with the externalId of the source')
    .option('--timezone <name>', 'the time zone of dates that name none, such as Europe/Berlin', parseZone)
    .option('--date-format <order>', 'CSV: the order of day, month and year, such as D.M.Y or M/D/Y', parseOrder)
    .option('--threads-only', 'Slack: only messages with replies')
    .option('--workspace <name>', 'Slack: the name of the workspace, for the URLs of messages')
    .option('--internal-notes', 'Zendesk: comments that are not public, too')
    .option('--strip-quotes', 'mail: without the text that a mail quotes')
    .addHelpText('after', helpAfter)
    .exitOverride((error) => {
      // Commander would end the process with its own code.
      deps.process.exitCode = error.exitCode === 0 ? 0 : EXIT_CODES.failed
      throw error
    })
    .action((names: string[], options: Options) => run({ ...DEFAULTS, ...options, names }, deps))
}

function helpAfter(): string {
  const names = formats.map(({ name, description }) => `  ${name.padEnd(12)} ${description}`)
  const codes = Object.entries(EXIT_CODES).map(([state, code]) => `${code} ${state.replaceAll('_', ' ')}`)
  return `\nFormats:\n${names.join('\n')}\n\nExit codes: ${codes.join(', ')}.`
}

function parseMost(text: string): number {
  return text === 'none' ? Number.POSITIVE_INFINITY : text === '0' ? 0 : parseCount(text)
}

function parseEncoding(text: string): string {
  try {
    return new TextDecoder(text).encoding
  } catch {
    throw new InvalidArgumentError('Write the name of an encoding, such as windows-1252, iso-8859-2 or shift_jis.')
  }
}

function parseZone(text: string): string {
  if (isTimeZone(text)) return text
  throw new InvalidArgumentError('Write the name of a time zone, such as Europe/Berlin or UTC.')
}

function parseOrder(text: string): string {
  if (orderOf(text) !== undefined) return text
  throw new InvalidArgumentError('Write the order of day, month and year, such as D.M.Y, M/D/Y or Y-M-D.')
}

function parsePair(text: string, pairs: ReadonlyMap<string, string> = new Map()): ReadonlyMap<string, string> {
  const at = text.indexOf('=')
  if (at < 1) throw new InvalidArgumentError('Write a name, =, and a value.')
  return new Map([...pairs, [text.slice(0, at), text.slice(at + 1)]])
}

async function run(asked: Options & ImportRequest, deps: ImportCommandDeps): Promise<void> {
  const { url, keyFile, json, quiet, ...request } = asked
  const stops = stopRequests({ outlivesTerminal: true })
  const interrupted = new AbortController()
  stops.stopping.addEventListener('abort', () => interrupted.abort(new Interrupted('The import was interrupted.')))
  const { stdin, stderr } = deps.process
  // Without this, Node would end at once, with an exit code of its own, and would not say how far the import got.
  const crash = (error: unknown) => interrupted.abort(error)
  deps.process.on('uncaughtException', crash)
  try {
    const summary = await runImport(request, {
      stdin,
      findTarget: () => findApi(deps, { url, keyFile }, 'importer'),
      interrupted: interrupted.signal,
      hurry: stops.hurry,
      show: (state) => showProgress({ style: styleOf({ json, quiet }, stderr.isTTY), state, stderr, print: deps.say }),
      showRejected: createFaultList(createPrinter((text) => stderr.write(text))),
    })
    const dashboard = request.dryRun ? undefined : await findDashboard(deps, { url })
    printSummary({ ...summary, dashboard }, { json, quiet }, deps)
    deps.process.exitCode = EXIT_CODES[summary.state]
  } finally {
    deps.process.off('uncaughtException', crash)
    stops.release()
  }
}

function styleOf({ json, quiet }: Output, isTerminal: boolean): ProgressStyle {
  if (quiet) return 'none'
  if (json) return 'json'
  return isTerminal ? 'bar' : 'lines'
}

/** A dry run shows the faults of at most this number of records. */
const SHOWN_FAULTS = 20

function createFaultList(print: (line: string) => void): (record: RejectedRecord) => void {
  let shown = 0
  return ({ reason, place: { path, line, pointer } }) => {
    shown += 1
    if (shown > SHOWN_FAULTS) return
    print(`${path}${line === undefined ? '' : `:${line}`}${pointer ? ` ${pointer}` : ''}: ${reason}`)
    if (shown === SHOWN_FAULTS) print('(Further faults are counted only.)')
  }
}

/** Prints on standard output, because the summary is the result. `--quiet` prints problems only, as errors. */
function printSummary(summary: Summary, { json, quiet }: Output, { say, process }: ImportCommandDeps): void {
  const lines = summaryLines(summary).flatMap((line) => line.split('\n'))
  if (json) say(jsonText(summaryObject(summary)))
  else if (!quiet) for (const line of lines) say(line)
  else if (summary.state !== 'completed') lines.forEach(createPrinter((text) => process.stderr.write(text)))
}
