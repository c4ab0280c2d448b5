import { processEnv } from './process-env.ts'
import { type Declarations, type Rule, readSettings, type Settings } from './read-settings.ts'
import { SettingsError } from './settings-error.ts'

/** The settings of this process; where they can't be used it says why on stderr, without a stack, and exits 1. */
export function settingsOrExit<D extends Declarations>(declarations: D, rule?: Rule<D>): Settings<D> {
  try {
    return readSettings(declarations, processEnv(), rule)
  } catch (error) {
    if (!(error instanceof SettingsError)) throw error
    process.stderr.write(`${error.message}\n`)
    process.exit(1)
  }
}
