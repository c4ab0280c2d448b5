// Entry point `@sluice/process`: what every process of Sluice needs.
export type { Logger } from 'pino'
export { listen } from './connection/listen.ts'
export { createLogger, redactKeys } from './create-logger.ts'
export { type ChooseGroup, createGroupCommit } from './group-commit.ts'
export {
  checkOf,
  pingWhenAsked,
  type Readiness,
  readinessOf,
  reasonWithCode,
  shareFor,
  startAdminServer,
} from './health.ts'
export {
  type MetricDeclarations,
  type MetricsOf,
  metric,
  mongoMetrics,
  openMetrics,
  processMetrics,
  SECONDS,
  totalOf,
  VERSION,
} from './metrics.ts'
export {
  agreedSettings,
  dashboardUrlSetting,
  processSettings,
  redisReplicasSetting,
  retainDaysSetting,
} from './process-settings.ts'
export { REVISION } from './revision.ts'
export { type Life, runUntilStopped } from './run-until-stopped.ts'
export {
  type Declarations,
  type Environment,
  processEnv,
  readSettings,
  SECRETS,
  type Setting,
  type Settings,
  SettingsError,
  setting,
  settingsOrExit,
} from './settings.ts'
export {
  inSpan,
  openTracing,
  type Span,
  SpanKind,
  startSpan,
  traceIdOf,
  traceparentOf,
} from './tracing.ts'
