import type { Setting } from './setting.ts'
import { type SettingFault, SettingsError } from './settings-error.ts'

/** Settings by the name that the code knows them under. */
export type Declarations = Readonly<Record<string, Setting<unknown>>>

/** The values that a set of declarations gives. */
export type Settings<D extends Declarations> = {
  readonly [K in keyof D]: D[K] extends Setting<infer T> ? T : never
}

/** Variables as a process has them. */
export type Environment = Readonly<Record<string, string | undefined>>

/** Looks at settings together, once each of them is fine by itself. */
export type Rule<D extends Declarations> = (settings: Settings<D>) => readonly SettingFault[]

// Enough to recognise a mistyped value by, too little to flood a terminal.
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

  // Every declared name has just been given the value that its own declaration read.
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
