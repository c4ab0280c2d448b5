// Runs commands of `sluice` in the process of a test. Each start of the program takes half a second of CPU, so few tests
// start it.
import { PassThrough, Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { type Command, CommanderError } from 'commander'
import type { FindApiDeps } from './find-api.ts'
import { importCommand } from './import/import-command.ts'

/** What a command printed, and its exit code. */
export interface Ran {
  readonly stdout: string
  readonly stderr: string
  readonly code: number
}

/** @param make makes the command, which prints lines on standard output by `print`. */
export async function runCommand(
  make: (print: (line: string) => void) => Command,
  args: readonly string[],
): Promise<Ran> {
  return run((print) => {
    const command = make(print)
    for (const one of [command, ...command.commands]) one.exitOverride()
    return command
  }, args)
}

/** Runs `sluice import …`, in whose standard input there is nothing. */
export async function runImport(deps: FindApiDeps, args: readonly string[]): Promise<Ran> {
  const stderr = Object.assign(new PassThrough(), { isTTY: false, columns: 80 })
  const process: { exitCode?: string | number | null | undefined } = {}
  const fake = Object.assign(process, { stdin: Readable.from([]), stderr, on: () => fake, off: () => fake })
  const errors = text(stderr)
  const ran = await run((say) => importCommand({ ...deps, say, process: fake as never }), args)
  stderr.end()
  // It sets the exit code itself.
  return { stdout: ran.stdout, stderr: ran.stderr + (await errors), code: Number(process.exitCode) }
}

async function run(make: (print: (line: string) => void) => Command, args: readonly string[]): Promise<Ran> {
  const ran = { stdout: '', stderr: '', code: 0 }
  const command = make((line) => {
    ran.stdout += `${line}\n`
  })
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
    if (!(error instanceof CommanderError)) throw error
    ran.code = error.exitCode
  })
  return ran
}
