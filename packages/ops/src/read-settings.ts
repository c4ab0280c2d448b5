// Reads declared settings from the environment, and reports every fault at once.
import type { Declarations, Setting } from './setting.ts'

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

/** The settings in the environment cannot be used. The message names all faults at once, so that one restart fixes them. */
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

/** The settings of this process. Where they can't be used, prints the faults on stderr, without a stack, and exits 1. */
export function settingsOrExit<D extends Declarations>(declarations: D, rule?: Rule<D>): Settings<D> {
  try {
    return readSettings(declarations, processEnv(), rule)
  } catch (error) {
    if (!(error instanceof SettingsError)) throw error
    process.stderr.write(`${error.message}\n`)
    process.exit(1)
  }
}
