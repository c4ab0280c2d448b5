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
  listenForStop,
  parseCount,
  progressStyle,
} from '@sluice/terminal'
import { Command, InvalidArgumentError, Option } from 'commander'
import { countThreads, type RejectedRecord } from './account/ledger.ts'
import { FIELDS } from './formats/csv/csv-threads.ts'
import { FORMAT_OPTIONS, OPTION_NAMES, readersOf } from './formats/format-options.ts'
import { formats } from './formats/formats.ts'
import { shellWord } from './formats/values/thread-fields.ts'
import type { ImportOptions } from './import-request.ts'
import { Interrupted } from './import-request.ts'
import { runImport } from './run-import.ts'
import { EXIT_CODES } from './show/exit-codes.ts'
import { showProgress } from './show/progress.ts'
import { type Summary, summaryLines, summaryObject } from './show/summary.ts'

interface ImportCommandDeps extends FindApiDeps {
  /** Prints on standard output, for programs. */
  say: (line: string) => void
  process: Pick<NodeJS.Process, 'stdin' | 'stderr' | 'exitCode' | 'argv' | 'on' | 'off'>
}

interface Output {
  json?: true | undefined
  quiet?: true | undefined
}

type Options = ApiOptions & Output & Omit<ImportOptions, 'names'>

/** The defaults that the help does not mention. */
const DEFAULTS = { map: new Map<string, string>(), set: new Map<string, string>(), idPrefix: '' }
const DEFAULT_MAX_ERRORS = 100
const DEFAULT_CONCURRENCY = 4

/** Creates the command `import`. It sets the exit code itself, even if an option can't be used. */
export function importCommand(deps: ImportCommandDeps): Command {
  const command = new Command('import')
    .description(
      'Imports the threads of export files, and goes on where an interrupted import stopped',
    )
    .usage('[options] <files...>')
    .argument('[files...]', 'files, folders, zip archives, .gz and .zst files; - is standard input')
  apiOptions(command, 'importer')
    .option('--format <name>', 'the format of the files, if it is not recognised')
    .option(
      '--encoding <name>',
      'the encoding of files that are not Unicode: windows-1252, shift_jis',
      parseEncoding,
    )
    .option('--dry-run', 'reads and checks everything, sends nothing, and needs no service')
    .option(
      '--id-prefix <text>',
      'stands before the externalId of each source: for accounts that share a tenant',
    )
    .option(
      '--max-errors <number>',
      'gives up after more rejected records; none: never',
      parseMost,
      DEFAULT_MAX_ERRORS,
    )
    .option(
      '--rejected <path>',
      'the file of rejected records (default: FILE.rejected.ndjson, then -2, -3)',
    )
    .option(
      '--state-dir <path>',
      'the folder of the checkpoint and the rejected file (default: the folder of FILE)',
    )
    .option(
      '--no-checkpoint',
      'keeps no FILE.sluice-checkpoint, so an interrupted import starts over',
    )
    .option('--concurrency <number>', 'the most batches in flight', parseCount, DEFAULT_CONCURRENCY)
    .option('--temp-dir <path>', 'where large inputs are sorted', tmpdir())
    .option('--json', 'prints progress and summary as JSON lines')
    .option(
      '--verbose',
      'sums up each conversation: messages, dates and speakers (a dry run does so for the first 50)',
    )
    .option('--quiet', 'prints no progress, and a summary only if something went wrong')
  for (const name of OPTION_NAMES) {
    const { flags, description, parse } = FORMAT_OPTIONS[name]
    const option = new Option(flags, `${readersOf(name, formats)}: ${description}`)
    command.addOption(parse === undefined ? option : option.argParser(parse))
  }
  return command
    .addHelpText('after', helpAfter)
    .exitOverride((error) => {
      // Commander would end the process with Commander's own code.
      deps.process.exitCode = error.exitCode === 0 ? 0 : EXIT_CODES.failed
      throw error
    })
    .action((names: string[], options: Options) =>
      names.length === 0 ? showGuide(deps.process) : run({ ...DEFAULTS, ...options, names }, deps),
    )
}

/** Shows how to begin: how to get exports of the best-known programs. */
function showGuide(process: ImportCommandDeps['process']): void {
  const others = formats.flatMap(({ name, howTo }) => (howTo === undefined ? name : []))
  const lines = [
    'Name the files: `sluice import FILE… --dry-run` checks them, and sends nothing. How to get an export:',
    ...formats.flatMap(({ name, howTo }) =>
      howTo === undefined ? [] : `  ${name.padEnd(9)} ${howTo}`,
    ),
    `Also read: ${others.join(', ')}. \`sluice import --help\` describes them, and all options.`,
  ]
  lines.forEach(createPrinter((text) => process.stderr.write(text)))
  process.exitCode = EXIT_CODES.failed
}

function helpAfter(): string {
  const names = formats.map(({ name, description }) => `  ${name.padEnd(12)} ${description}`)
  const codes = Object.entries(EXIT_CODES).map(
    ([state, code]) => `${code} ${state.replaceAll('_', ' ')}`,
  )
  return `\nFormats:\n${names.join('\n')}\n\nFields of --map and --set: ${[...FIELDS].join(', ')}.\n\nExit codes: ${codes.join(', ')}.`
}

function parseMost(text: string): number {
  return text === 'none' ? Number.POSITIVE_INFINITY : text === '0' ? 0 : parseCount(text)
}

function parseEncoding(text: string): string {
  try {
    return new TextDecoder(text).encoding
  } catch {
    throw new InvalidArgumentError(
      'Write the name of an encoding, such as windows-1252, iso-8859-2 or shift_jis.',
    )
  }
}

async function run(asked: Options & ImportOptions, deps: ImportCommandDeps): Promise<void> {
  const { url, keyFile, json, quiet, ...request } = asked
  const stops = listenForStop({ outlivesTerminal: true })
  const interrupted = new AbortController()
  stops.stopping.addEventListener('abort', () =>
    interrupted.abort(new Interrupted('The import was interrupted.')),
  )
  const { stdin, stderr } = deps.process
  // Without this, Node would end immediately with its own exit code, and the command would not say
  // how far the import got.
  const crash = (error: unknown) => interrupted.abort(error)
  deps.process.on('uncaughtException', crash)
  try {
    const summary = await runImport(request, {
      stdin,
      findTarget: () => findApi(deps, { url, keyFile }, 'importer'),
      interrupted: interrupted.signal,
      hurry: stops.hurry,
      show: (state) =>
        showProgress({
          style: progressStyle({ json, quiet }, stderr.isTTY),
          state,
          stderr,
          print: deps.say,
        }),
      showRejected: createFaultList(createPrinter((text) => stderr.write(text))),
    })
    const hasSent = !request.dryRun && countThreads(summary.tally) > 0
    const dashboard = hasSent ? await findDashboard(deps, { url }) : undefined
    const corrected = request.dryRun && withOptions(deps.process.argv, summary.lacking)
    printSummary({ ...summary, dashboard, corrected }, { json, quiet }, deps)
    deps.process.exitCode = EXIT_CODES[summary.state]
  } finally {
    deps.process.off('uncaughtException', crash)
    stops.release()
  }
}

/**
 * The command as it was typed, and what it lacks. If an option is repeated, the last one counts.
 */
function withOptions(
  [, , ...words]: readonly string[],
  lacking: readonly string[] = [],
): string | undefined {
  if (lacking.length === 0) return undefined
  const program = words[0] === 'import' ? 'sluice' : 'sluice-import'
  return [program, ...words.map((word) => shellWord(word, word.length)), ...lacking].join(' ')
}

/** A dry run shows the faults of at most this number of records. */
const SHOWN_FAULTS = 20

function createFaultList(print: (line: string) => void): (record: RejectedRecord) => void {
  let shown = 0
  return ({ reason, place: { path, line, pointer } }) => {
    shown += 1
    if (shown > SHOWN_FAULTS) return
    print(
      `${path}${line === undefined ? '' : `:${line}`}${pointer ? ` ${pointer}` : ''}: ${reason}`,
    )
    if (shown === SHOWN_FAULTS) print('(Further faults are counted only.)')
  }
}

/**
 * Prints the summary, which is the result of the command. With `--quiet`, prints it only if the
 * import was not completed, to standard error.
 */
function printSummary(
  summary: Summary,
  { json, quiet }: Output,
  { say, process }: ImportCommandDeps,
): void {
  const lines = summaryLines(summary).flatMap((line) => line.split('\n'))
  if (json) say(jsonText(summaryObject(summary)))
  else if (!quiet) for (const line of lines) say(line)
  else if (summary.state !== 'completed')
    lines.forEach(createPrinter((text) => process.stderr.write(text)))
}
