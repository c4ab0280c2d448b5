// Runs the command of a program. If an error is one that people can correct, the program ends with
// a message and without a stack.
import { inspect } from 'node:util'
import { type Command, CommanderError } from 'commander'
import { createPrinter, printable } from './terminal.ts'

/** What the user asked for can't be done. The message alone tells people what to do. */
export class UserError extends Error {
  override readonly name: string = 'UserError'
  /** The exit code of the program. */
  readonly exitCode: number = 1
}

/** Redis can't be reached. */
export class RedisUnavailableError extends UserError {}

/**
 * Errors that need no stack. They are listed by name, because few commands load the modules that
 * define them.
 */
const FOR_PEOPLE = new Set([
  'UserError',
  'DidNotStart',
  'KeyRefusedError',
  'NoServer',
  'OtherStoreError',
  'SettingsError',
  'SluiceProblem',
  'SluiceUnreachable',
  'UnusableData',
])

/** Errors of the operating system that people can correct. */
const SYSTEM_ERRORS: Readonly<Record<string, string>> = {
  ENOENT: 'it does not exist',
  EISDIR: 'it is a folder',
  EACCES: 'permission denied',
  EPERM: 'permission denied',
  EROFS: 'the file system is read-only',
  ENOSPC: 'no space is left on the device',
  ENOTDIR: 'a part of the path is no folder',
}

/**
 * Names of errors: of MongoDB, its driver and our store, and of Redis, its client, and commands
 * that take too long.
 */
export const OF_MONGODB = /^(?:CommandFailed|Mongo|BSON|Store)\w*Error$/
const OF_REDIS =
  /^(?:Abort|ClusterAllFailed|Interrupt|MaxRetriesPerRequest|Parser|QueueUnavailable|Redis|Reply|Timeout)Error$/
const OF_NETWORK = /^E(?:CONN|PIPE|TIMEDOUT|HOST|NET|NOTFOUND|AI_AGAIN)/

/**
 * Returns the message of an error that needs no stack. Returns undefined if this program is at
 * fault.
 */
export function messageForPeople(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined
  if (/^Mongo(ServerSelection|TopologyClosed)Error$/.test(error.name))
    return `MongoDB cannot be reached: ${error.message}`
  const code = 'code' in error && typeof error.code === 'string' ? error.code : ''
  if (code in SYSTEM_ERRORS)
    return `${'path' in error ? error.path : error.message}: ${SYSTEM_ERRORS[code]}`
  if ([OF_MONGODB, OF_REDIS].some((names) => names.test(error.name)) || OF_NETWORK.test(code))
    return `MongoDB or Redis failed: ${error.message} (${error.name})`
  return FOR_PEOPLE.has(error.name) ? error.message : undefined
}

/**
 * Node's codes for a certificate from an unknown authority. For other faults of certificates,
 * Node's own messages suffice.
 */
const UNTRUSTED = /SELF_SIGNED_CERT|^UNABLE_TO_(?:GET_ISSUER|VERIFY)/

/**
 * Says why a server can't be reached by TLS, and what to do. Returns undefined if a request failed
 * for another reason.
 */
export function tlsFault(error: unknown): string | undefined {
  const { code, message, cause } = Object(error)
  if (code === 'ERR_SSL_WRONG_VERSION_NUMBER')
    return 'its port has no TLS. Write http:// instead of https://'
  if (UNTRUSTED.test(String(code)))
    return `its certificate is not trusted (${message}). Set NODE_EXTRA_CA_CERTS to a file with the certificate of the authority that signed it`
  return cause === undefined ? undefined : tlsFault(cause)
}

/** Prints a message on standard error. The process will end with exit code 1. */
export function fail(message: string): void {
  message.split('\n').forEach(createPrinter((text) => process.stderr.write(text)))
  process.exitCode = 1
}

/**
 * Runs the command with which this process was started.
 * @param explain returns why an error was thrown, or the error itself.
 * @throws {Error} if the program is at fault.
 */
export async function runProgram(
  command: Command,
  explain = (error: unknown) => error,
): Promise<void> {
  // The reader of our output may end first. This must not cut an orderly stop short.
  process.stdout.on('error', () => {})
  process.stderr.on('error', () => {})
  try {
    await command.parseAsync()
  } catch (thrown) {
    const error = explain(thrown)
    const message = messageForPeople(error)
    if (message !== undefined) {
      fail(`error: ${message}`)
      if (error instanceof UserError) process.exitCode = error.exitCode
    }
    // `sluice import` has printed a CommanderError, and set the exit code.
    else if (!(error instanceof CommanderError)) throw withPrintableStack(error)
  }
}

/**
 * Makes the stack of an error safe for a terminal, because its message may quote a server. Node
 * prints the stack.
 */
function withPrintableStack(error: unknown): Error {
  return Object.assign(new Error(), { stack: inspect(error).split('\n').map(printable).join('\n') })
}
