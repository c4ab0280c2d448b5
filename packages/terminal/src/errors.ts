// The errors that end a command with a message and exit code 1.

/** What the user asked for can't be done. The message is all that people need. */
export class UserError extends Error {
  override readonly name: string = 'UserError'
}

/** Redis can't be reached. */
export class RedisAwayError extends UserError {}

/** Errors that need no stack. By their names, because few commands load the modules that define them. */
const FOR_PEOPLE = new Set([
  'UserError',
  'DidNotStart',
  'KeyRefusedError',
  'NoServer',
  'SettingsError',
  'SluiceProblem',
  'SluiceUnreachable',
  'UnusableData',
])

/** Errors of the operating system that people can do something about. */
const SYSTEM_ERRORS: Readonly<Record<string, string>> = {
  EACCES: 'permission denied',
  EPERM: 'permission denied',
  EROFS: 'the file system is read-only',
  ENOSPC: 'no space is left on the device',
  ENOTDIR: 'a part of the path is no folder',
}

/** The message of an error that needs no stack. Undefined if the error is a fault of this program. */
export function messageForPeople(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined
  if (/^Mongo(ServerSelection|TopologyClosed)Error$/.test(error.name))
    return `MongoDB cannot be reached: ${error.message}`
  if ('code' in error && typeof error.code === 'string' && error.code in SYSTEM_ERRORS)
    return `${'path' in error ? error.path : error.message}: ${SYSTEM_ERRORS[error.code]}`
  return FOR_PEOPLE.has(error.name) ? error.message : undefined
}
