/** What came of reading one setting's text: its value, or what is wrong with it in words that don't repeat the text. */
export type Reading<T> = { readonly value: T } | { readonly fault: string }

/** One thing that an operator can set by the environment. */
export interface Setting<T> {
  readonly env: string
  readonly description: string
  /** The value where the environment has none; `undefined`: it must be set. `null` stands for "off" or "none". */
  readonly fallback: T | undefined
  /** What a value must be, as the sentence "must be …" goes on. */
  readonly bound: string
  /** The value may hold a credential: no message ever shows it. */
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
  return declare(spec, bound, (given) => (given.length <= maxLength && pattern.test(given) ? given : undefined))
}

function url<D extends string | null = never>(
  spec: Declared<D> & { protocols: readonly string[] },
): Setting<string | D> {
  const bound = `a URL that begins with ${spec.protocols.map((protocol) => `${protocol}//`).join(' or ')}`
  // Only the scheme is looked at: a MongoDB URL with several hosts is none to the WHATWG parser.
  const shape = /^([a-z+]+:)\/\/[^/\s]\S*$/i
  return declare(spec, bound, (given) => {
    const scheme = shape.exec(given)?.[1]
    return scheme !== undefined && spec.protocols.includes(scheme.toLowerCase()) ? given : undefined
  })
}

function choice<C extends string, D extends C | null = never>(
  spec: Declared<D> & { choices: readonly C[] },
): Setting<C | D> {
  return declare(spec, `one of ${spec.choices.join(', ')}`, (given) => spec.choices.find((one) => one === given))
}

function flag<D extends boolean | null = never>(spec: Declared<D>): Setting<boolean | D> {
  const meanings = new Map([
    ['true', true],
    ['1', true],
    ['false', false],
    ['0', false],
  ])
  return declare(spec, 'true or false', (given) => meanings.get(given.toLowerCase()))
}

/**
 * Makes declarations of settings, one function a kind of value. Without `default` a setting must be set; with
 * `default: null` it may be absent. Numbers are at least 0 unless `min` says otherwise.
 */
export const setting = { number, wholeNumber, text, url, choice, flag }
