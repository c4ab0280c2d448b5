// Declares settings (their names in the environment, kinds, bounds, and rows in the documents), and reads them.

/** The result of reading one setting's text: its value, or its fault in words that don't repeat the text. */
type Reading<T> = { readonly value: T } | { readonly fault: string }

/** A value that an operator can set in the environment. */
export interface Setting<T> {
  readonly env: string
  readonly description: string
  /** The value if the environment has none. `undefined`: the setting is required. `null` means "off" or "none". */
  readonly fallback: T | undefined
  /** The rule for values: the rest of the sentence "must be …". */
  readonly bound: string
  /** The value may contain a credential: no message ever shows the value. */
  readonly secret: boolean
  read(text: string): Reading<T>
}

interface Declared<D> {
  env: string
  description: string
  default?: D
  secret?: boolean
}

function declare<T, D>(spec: Declared<D>, bound: string, parse: (text: string) => T | undefined): Setting<T | D> {
  return {
    env: spec.env,
    description: spec.description,
    fallback: spec.default,
    bound,
    secret: spec.secret ?? false,
    read: (text) => {
      const value = parse(text)
      return value === undefined ? { fault: `must be ${bound}` } : { value }
    },
  }
}

function range(min: number, max: number): string {
  if (max === Number.MAX_SAFE_INTEGER) return `of at least ${min}`
  return `from ${min} to ${max}`
}

function number<D extends number | null = never>(
  spec: Declared<D> & { min?: number; max?: number },
): Setting<number | D> {
  const { min = 0, max = Number.MAX_SAFE_INTEGER } = spec
  return declare(spec, `a number ${range(min, max)}`, (text) => within(text, /^-?\d+(\.\d+)?$/, min, max))
}

function wholeNumber<D extends number | null = never>(
  spec: Declared<D> & { min?: number; max?: number },
): Setting<number | D> {
  const { min = 0, max = Number.MAX_SAFE_INTEGER } = spec
  return declare(spec, `a whole number ${range(min, max)}`, (text) => within(text, /^-?\d+$/, min, max))
}

function within(text: string, shape: RegExp, min: number, max: number): number | undefined {
  const value = Number(text)
  return shape.test(text) && value >= min && value <= max ? value : undefined
}

function text<D extends string | null = never>(
  spec: Declared<D> & { maxLength?: number; pattern?: RegExp; bound?: string },
): Setting<string | D> {
  const { maxLength = 1_000, pattern = /^/, bound = `text of at most ${maxLength} characters` } = spec
  return declare(spec, bound, (input) => (input.length <= maxLength && pattern.test(input) ? input : undefined))
}

function url<D extends string | null = never>(
  spec: Declared<D> & { protocols: readonly string[] },
): Setting<string | D> {
  const bound = `a URL that begins with ${spec.protocols.map((protocol) => `${protocol}//`).join(' or ')}`
  // Checks only the scheme: the WHATWG parser refuses a MongoDB URL with several hosts.
  const shape = /^([a-z+]+:)\/\/[^/\s]\S*$/i
  return declare(spec, bound, (input) => {
    const scheme = shape.exec(input)?.[1]
    return scheme !== undefined && spec.protocols.includes(scheme.toLowerCase()) ? input : undefined
  })
}

function choice<C extends string, D extends C | null = never>(
  spec: Declared<D> & { choices: readonly C[] },
): Setting<C | D> {
  return declare(spec, `one of ${spec.choices.join(', ')}`, (input) => spec.choices.find((one) => one === input))
}

function flag<D extends boolean | null = never>(spec: Declared<D>): Setting<boolean | D> {
  const meanings = new Map([
    ['true', true],
    ['1', true],
    ['false', false],
    ['0', false],
  ])
  return declare(spec, 'true or false', (input) => meanings.get(input.toLowerCase()))
}

/**
 * Declares settings, one function per kind of value. A setting without `default` is required; one with `default: null`
 * is optional. Numbers are at least 0 unless `min` says otherwise.
 */
export const setting = { number, wholeNumber, text, url, choice, flag }

/** Settings by their names in the code. */
export type Declarations = Readonly<Record<string, Setting<unknown>>>

/** The rows of a Markdown table (Setting, Default, Must be, What it is for), one per setting, in the order declared. */
export function settingsTable(declarations: Declarations): string {
  return Object.values(declarations).map(row).join('\n')
}

function row(setting: Setting<unknown>): string {
  const purpose = setting.secret ? `${setting.description} Secret.` : setting.description
  const cells = [`\`${setting.env}\``, fallback(setting), setting.bound, purpose]
  return `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`
}

function fallback(setting: Setting<unknown>): string {
  if (setting.fallback === undefined) return 'required'
  return setting.fallback === null ? 'none' : `\`${setting.fallback}\``
}

/** The values of a set of declarations. */
export type Settings<D extends Declarations> = {
  readonly [K in keyof D]: D[K] extends Setting<infer T> ? T : never
}

/** Environment variables of a process. */
export type Environment = Readonly<Record<string, string | undefined>>

/** Checks settings against each other, once each of them is valid by itself. */
export type Rule<D extends Declarations> = (settings: Settings<D>) => readonly SettingFault[]

/** One fault in the environment; `env` is the setting's name, or several names if settings contradict each other. */
export interface SettingFault {
  readonly env: string
  readonly message: string
}

/**
 * The settings in the environment cannot be used. The message names all faults at once, so that one restart fixes them.
 */
export class SettingsError extends Error {
  readonly faults: readonly SettingFault[]

  constructor(faults: readonly SettingFault[]) {
    const lines = faults.map(({ env, message }) => `  ${env} ${message}`)
    super(['The settings in the environment cannot be used:', ...lines].join('\n'))
    this.name = 'SettingsError'
    this.faults = faults
  }
}

// Enough to recognise a mistyped value, too little to flood a terminal.
const SHOWN_LENGTH = 80

/**
 * Reads declared settings from an environment; a blank variable counts as absent. `rule` may refuse values that
 * contradict each other. Throws SettingsError with every fault.
 */
export function readSettings<D extends Declarations>(declarations: D, env: Environment, rule?: Rule<D>): Settings<D> {
  const faults: SettingFault[] = []
  const values = Object.entries(declarations).map(([name, setting]) => {
    const reading = readOne(setting, env[setting.env]?.trim() ?? '')
    if ('value' in reading) return [name, reading.value]
    faults.push({ env: setting.env, message: reading.fault })
    return [name, undefined]
  })
  if (faults.length > 0) throw new SettingsError(faults)

  // Every declared name now has the value that its own declaration read.
  const settings = Object.fromEntries(values) as Settings<D>
  const contradictions = rule?.(settings) ?? []
  if (contradictions.length > 0) throw new SettingsError(contradictions)
  return settings
}

function readOne<T>(setting: Setting<T>, text: string): ReturnType<Setting<T>['read']> {
  if (text === '') {
    if (setting.fallback !== undefined) return { value: setting.fallback }
    return { fault: `must be set, to ${setting.bound}: ${setting.description}` }
  }
  const reading = setting.read(text)
  if ('value' in reading || setting.secret) return reading
  return { fault: `${reading.fault}, not ${JSON.stringify(text.slice(0, SHOWN_LENGTH))}` }
}

/** The environment of this process, for `main.ts` files: nothing else reads it. */
export function processEnv(): Environment {
  return process.env
}

/**
 * The settings of this process. Where they can't be used, prints the faults on stderr, without a stack, and exits 1.
 */
export function settingsOrExit<D extends Declarations>(declarations: D, rule?: Rule<D>): Settings<D> {
  try {
    return readSettings(declarations, processEnv(), rule)
  } catch (error) {
    if (!(error instanceof SettingsError)) throw error
    process.stderr.write(`${error.message}\n`)
    process.exit(1)
  }
}
