// Operations of a process: settings, logs, metrics, health, and an orderly end.
export type { Logger } from 'pino'
export { createLogger } from './create-logger.ts'
export { checkOf, listen, pingWhenAsked, type Readiness, readinessOf, shareFor, startAdminServer } from './health.ts'
export { redactKeys } from './log-line.ts'
export {
  type MetricDeclarations,
  type MetricsOf,
  metric,
  mongoMetrics,
  openMetrics,
  processMetrics,
  SECONDS,
  totalsOf,
  versionOfSluice,
} from './metrics.ts'
export { agreedSettings, dashboardUrlSetting, processSettings } from './process-settings.ts'
export { runUntilStopped } from './run-until-stopped.ts'
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
export { openTracing } from './trace-export.ts'
export { inSpan, type Span, SpanKind, startSpan, traceIdOf, traceparentOf } from './tracing.ts'
