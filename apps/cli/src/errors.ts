// The errors that end a command with a message and exit code 1.

/** What the user asked for can't be done. The message is all that people need. */
export class UserError extends Error {
  override readonly name: string = 'UserError'
}

/** Redis can't be reached. */
export class RedisAwayError extends UserError {}

/** Errors of packages that need no stack either. By their names, because few commands load the modules that have them. */
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

/** The message of an error that needs no stack. Undefined if the error is a fault of this program. */
export function messageForPeople(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined
  if (/^Mongo(ServerSelection|TopologyClosed)Error$/.test(error.name))
    return `MongoDB cannot be reached: ${error.message}`
  return FOR_PEOPLE.has(error.name) ? error.message : undefined
}
