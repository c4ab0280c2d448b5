// Runs a command in the process of a test: starting the program costs half a second of CPU.
import { type Command, CommanderError } from 'commander'
import { messageForPeople } from './run-program.ts'
import { createPrinter } from './terminal.ts'

/** What a command printed, and its exit code. */
export interface Ran {
  readonly stdout: string
  readonly stderr: string
  readonly code: number
}

/** Makes a command, and runs it as `runProgram` does. */
export async function runMade(
  make: (print: (line: string) => void) => Command,
  args: readonly string[],
): Promise<Ran> {
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
