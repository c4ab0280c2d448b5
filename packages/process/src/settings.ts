// Declares settings (their names in the environment, kinds and bounds), and reads them.
import { readFileSync } from 'node:fs'

interface Declared<T> {
  env: string
  description: string
  /** The value if the environment has none. `null` means "none". */
  default: T
  /**
   * No message shows the value, which may contain a credential. `SECRETS` must list the variable,
   * too.
   */
  secret?: boolean
  /** Other variables that must be set if this one is. */
  needs?: readonly string[]
  /**
   * All processes that read the setting need the same value. So the Helm chart refuses to set it
   * for one kind of process.
   */
  agreed?: boolean
}

/** A declared setting, with the rule for its values. */
export type Setting<T> = ReturnType<typeof declare<T>>

/**
 * Declares a setting.
 * @param bound the rule for values, as the rest of the sentence "must be …".
 * @param shape matches every text that can be a value, and some that break the rule, such as
 * numbers out of range.
 * @param parse returns the value of a text, or undefined if the text breaks the rule.
 */
function declare<T>(
  spec: Declared<T>,
  bound: string,
  shape: RegExp,
  parse: (text: string) => T | undefined,
  range?: { min: number; max?: number | undefined },
) {
  const { env, description, default: fallback, secret = false, needs = [], agreed = false } = spec
  return { env, description, fallback, bound, secret, needs, agreed, shape, parse, range }
}

type DeclaredNumber = Declared<number> & { min?: number; max?: number }

const number = (spec: DeclaredNumber) => declareNumber(spec, 'a number', /^\d+(\.\d+)?$/)
const wholeNumber = (spec: DeclaredNumber) => declareNumber(spec, 'a whole number', /^\d+$/)

function declareNumber(spec: DeclaredNumber, kind: string, shape: RegExp): Setting<number> {
  const { min = 0, max = Number.MAX_SAFE_INTEGER } = spec
  const range = max === Number.MAX_SAFE_INTEGER ? `of at least ${min}` : `from ${min} to ${max}`
  const parse = (input: string) => {
    const value = Number(input)
    return shape.test(input) && value >= min && value <= max ? value : undefined
  }
  return declare(spec, `${kind} ${range}`, shape, parse, { min, max: spec.max })
}

function text<D extends string | null>(
  spec: Declared<D> & { maxLength?: number; pattern?: RegExp; bound?: string },
): Setting<string | D> {
  const {
    maxLength = 1_000,
    pattern = /^/,
    bound = `text of at most ${maxLength} characters`,
  } = spec
  return declare<string | D>(spec, bound, pattern, (input) =>
    input.length <= maxLength && pattern.test(input) ? input : undefined,
  )
}

function choice<C extends string>(spec: Declared<C> & { choices: readonly C[] }): Setting<C> {
  const shape = new RegExp(`^(${spec.choices.join('|')})$`)
  return declare(spec, `one of ${spec.choices.join(', ')}`, shape, (input) =>
    spec.choices.find((one) => one === input),
  )
}

/**
 * Declares settings, with one function for each kind of value. Numbers are at least 0, unless `min`
 * says otherwise.
 */
export const setting = { number, wholeNumber, text, choice }

export type Declarations = Readonly<Record<string, Setting<unknown>>>

/** The values of a set of declarations. */
export type Settings<D extends Declarations> = {
  readonly [K in keyof D]: D[K] extends Setting<infer T> ? T : never
}

export type Environment = Readonly<Record<string, string | undefined>>

/**
 * The settings in the environment can't be used. The message names all faults, so that people can
 * fix them with one restart.
 */
export class SettingsError extends Error {
  constructor(faults: readonly string[]) {
    super(
      [
        'The settings in the environment cannot be used:',
        ...faults.map((fault) => `  ${fault}`),
      ].join('\n'),
    )
    this.name = 'SettingsError'
  }
}

// Long enough to recognise a mistyped value, and short enough not to flood a terminal.
const SHOWN_LENGTH = 80

/**
 * Reads declared settings from an environment. A blank variable counts as absent.
 * @throws {SettingsError}
 */
export function readSettings<D extends Declarations>(
  declarations: D,
  env: Environment,
): Settings<D> {
  const faults: string[] = []
  const textOf = (name: string) => env[name]?.trim() ?? ''
  const values = Object.entries(declarations).map(
    ([name, { env, fallback, bound, secret, needs, parse }]) => {
      const text = textOf(env)
      if (text === '') return [name, fallback]
      const absent = needs.filter((other) => textOf(other) === '')
      faults.push(...absent.map((other) => `${other} must be set, because ${env} is`))
      const value = parse(text)
      const shown = secret ? '' : `, not ${JSON.stringify(text.slice(0, SHOWN_LENGTH))}`
      if (value === undefined) faults.push(`${env} must be ${bound}${shown}`)
      return [name, value]
    },
  )
  if (faults.length > 0) throw new SettingsError(faults)
  // Each declared name now has the value that was read for it.
  return Object.fromEntries(values) as Settings<D>
}

/**
 * Secrets that can be in a file, as Docker and Kubernetes mount them. For example, `REDIS_URL_FILE`
 * names the file for `REDIS_URL`.
 */
export const SECRETS: readonly string[] = ['REDIS_URL', 'MONGODB_URL', 'OIDC_CLIENT_SECRET']

/**
 * Returns an environment with the secrets from files, and without the files' names. Values lose the
 * line ends and spaces around them, which a file has that was edited on Windows.
 * @throws {SettingsError}
 */
export function withSecrets(given: Environment): Environment {
  const trimmed = Object.entries(given).map(([name, value]) => [name, value?.trim()])
  const env: Environment = Object.fromEntries(trimmed)
  const faults: string[] = []
  const read: Record<string, string | undefined> = {}
  for (const name of SECRETS) {
    const file = `${name}_FILE`
    const path = env[file]
    if (!path) continue
    if (env[name]) faults.push(`${file} must not be set, because ${name} is`)
    try {
      Object.assign(read, { [name]: readFileSync(path, 'utf8').trim(), [file]: undefined })
      if (read[name] === '') faults.push(`${file} names a file that is empty`)
    } catch (error) {
      faults.push(
        `${file} names a file that can't be read: ${error instanceof Error ? error.message : error}`,
      )
    }
  }
  if (faults.length > 0) throw new SettingsError(faults)
  return { ...env, ...read }
}

/**
 * Returns the environment of this process, with the secrets from files. Only `main.ts` files read
 * it, with this function or `settingsOrExit`. Exits 1 if a secret can't be read.
 */
export function processEnv(): Environment {
  return orExit(() => withSecrets(process.env))
}

/**
 * Returns the settings of this process. If they can't be used, prints the faults on stderr, without
 * a stack, and exits 1.
 */
export function settingsOrExit<D extends Declarations>(declarations: D): Settings<D> {
  const env = processEnv()
  return orExit(() => readSettings(declarations, env))
}

function orExit<Value>(read: () => Value): Value {
  try {
    return read()
  } catch (error) {
    if (!(error instanceof SettingsError)) throw error
    process.stderr.write(`${error.message}\n`)
    process.exit(1)
  }
}
