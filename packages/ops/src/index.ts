// Operations of a process: settings, logs, metrics, health, and an orderly end.
export type { Logger } from 'pino'
export { createLogger } from './create-logger.ts'
export { createMetrics, type Metrics } from './create-metrics.ts'
export { redactKeys } from './log-line.ts'
export { claimBytesSetting, processSettings, waitSetting } from './process-settings.ts'
export {
  type Environment,
  processEnv,
  type Rule,
  readSettings,
  type SettingFault,
  type Settings,
  SettingsError,
  settingsOrExit,
} from './read-settings.ts'
export { checkOf, pingWhenAsked, type Readiness, readinessOf } from './readiness.ts'
export { type Life, type Release, runUntilStopped } from './run-until-stopped.ts'
export { type Declarations, type Setting, setting, settingsTable } from './setting.ts'
export { startAdminServer } from './start-admin-server.ts'
