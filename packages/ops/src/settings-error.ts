/** One thing wrong with the environment; `env` is the setting's name, or several where they contradict each other. */
export interface SettingFault {
  readonly env: string
  readonly message: string
}

/** The environment can't be used. Names every fault at once, so that nobody mends them one restart at a time. */
export class SettingsError extends Error {
  readonly faults: readonly SettingFault[]

  constructor(faults: readonly SettingFault[]) {
    const lines = faults.map(({ env, message }) => `  ${env} ${message}`)
    super(['The settings in the environment can not be used:', ...lines].join('\n'))
    this.name = 'SettingsError'
    this.faults = faults
  }
}
