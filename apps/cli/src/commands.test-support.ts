// Runs commands of `sluice` in the process of a test: starting the program costs half a second of CPU.
import { PassThrough, Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { type Command, CommanderError } from 'commander'
import { messageForPeople } from './errors.ts'
import type { ApiOptions, FindApiDeps } from './find-api.ts'
import { importCommand } from './import/import-command.ts'
import { openAdminClient } from './jobs/admin-client.ts'
import { tailCommand } from './jobs/hits-commands.ts'
import { jobsCommand } from './jobs/jobs-command.ts'
import { laneCommand, statusCommand } from './jobs/queue-commands.ts'
import { getCommand, listCommand } from './sources/sources-commands.ts'
import { createPrinter } from './terminal.ts'

/** What a command printed, and its exit code. */
export interface Ran {
  readonly stdout: string
  readonly stderr: string
  readonly code: number
}

type Print = (line: string) => void

/** Makes a command as `main.ts` does. Nobody answers its questions. */
function makeCommand(name: 'get' | 'jobs' | 'list' | 'pause' | 'status' | 'tail', deps: FindApiDeps, print: Print) {
  const openClient = (options: ApiOptions) => openAdminClient(deps, options)
  const makers: Record<typeof name, () => Command> = {
    get: () => getCommand({ ...deps, print }),
    jobs: () => jobsCommand({ openClient, print, confirm: async () => false }),
    list: () => listCommand({ ...deps, print }),
    pause: () => laneCommand('pause', { openClient, print }),
    status: () => statusCommand({ openClient, print, show: print }),
    tail: () => tailCommand({ openClient, print, show: print }),
  }
  return makers[name]()
}

/** Runs `sluice NAME …`. */
export function runCommand(
  deps: FindApiDeps,
  name: Parameters<typeof makeCommand>[0],
  args: readonly string[],
): Promise<Ran> {
  return run((print) => {
    const command = makeCommand(name, deps, print)
    for (const one of [command, ...command.commands]) one.exitOverride()
    return command
  }, args)
}

/** Runs `sluice import …` with an empty standard input. */
export async function runImport(deps: FindApiDeps, args: readonly string[]): Promise<Ran> {
  const stderr = Object.assign(new PassThrough(), { isTTY: false, columns: 80 })
  const process: { exitCode?: string | number | null | undefined } = {}
  const fake = Object.assign(process, { stdin: Readable.from([]), stderr, on: () => fake, off: () => fake })
  const errors = text(stderr)
  const ran = await run((say) => importCommand({ ...deps, say, process: fake as never }), args)
  stderr.end()
  // The command sets the exit code itself.
  return { stdout: ran.stdout, stderr: ran.stderr + (await errors), code: Number(process.exitCode) }
}

async function run(make: (print: Print) => Command, args: readonly string[]): Promise<Ran> {
  const ran = { stdout: '', stderr: '', code: 0 }
  const print = createPrinter((text) => {
    ran.stdout += text
  })
  const command = make(print)
  for (const one of [command, ...command.commands]) {
    one.configureOutput({
      writeOut(message) {
        ran.stdout += message
      },
      writeErr(message) {
        ran.stderr += message
      },
    })
  }
  await command.parseAsync(args, { from: 'user' }).catch((error) => {
    const message = messageForPeople(error)
    if (message === undefined && !(error instanceof CommanderError)) throw error
    const show = createPrinter((text) => {
      ran.stderr += text
    })
    if (message !== undefined) `error: ${message}`.split('\n').forEach(show)
    ran.code = error.exitCode ?? 1
  })
  return ran
}
