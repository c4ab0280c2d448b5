// Runs the command of a program. Prints an error without its stack if people can do something about the error.
import { inspect } from 'node:util'
import { type Command, CommanderError } from 'commander'
import { messageForPeople } from './errors.ts'
import { createPrinter, printable } from './terminal.ts'

const show = createPrinter((text) => process.stderr.write(text))

/** Prints a message on standard error. The process will end with exit code 1. */
export function fail(message: string): void {
  message.split('\n').forEach(show)
  process.exitCode = 1
}

/** Runs the command that this process was started with. @throws {Error} that is a fault of the program. */
export async function runProgram(command: Command): Promise<void> {
  // The reader of our output may end before us; that must not cut an orderly stop short.
  process.stdout.on('error', () => {})
  process.stderr.on('error', () => {})
  try {
    await command.parseAsync()
  } catch (error) {
    const message = messageForPeople(error)
    if (message !== undefined) fail(`error: ${message}`)
    // `sluice import` has printed a CommanderError, and set the exit code.
    else if (!(error instanceof CommanderError)) throw withPrintableStack(error)
  }
}

/** Makes the stack that Node prints of a fault safe for a terminal: its message may quote a server. */
function withPrintableStack(error: unknown): Error {
  return Object.assign(new Error(), { stack: inspect(error).split('\n').map(printable).join('\n') })
}
