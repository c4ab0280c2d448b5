// Declares the settings that several processes share.
import { setting } from './settings.ts'

/**
 * The settings on which the API and the workers must agree. Workers keep results for twice the time that callers wait,
 * create the index for the lists of sources of the API, and add results to the idempotency keys of the API.
 */
export const agreedSettings = {
  waitSeconds: setting.number({
    env: 'WAIT_SECONDS',
    description: 'How long the API lets a caller wait; results whose job id no caller has are kept twice as long.',
    default: 30,
    min: 0.1,
    max: 3_600,
    agreed: true,
  }),
  listSources: setting.choice({
    env: 'LIST_SOURCES',
    description:
      'Whether GET /sources lists sources. Costs an index, and a tenth to a sixth of the rate of new sources. `start` sets it.',
    default: 'off',
    choices: ['on', 'off'],
    agreed: true,
  }),
  claimBytes: setting.wholeNumber({
    env: 'IDEMPOTENCY_BYTES',
    description:
      'How many bytes of Redis the idempotency keys of requests may take, with the results of their jobs. Beyond it, the tenant with the most loses its oldest keys first.',
    default: 134_217_728,
    min: 1_048_576,
    agreed: true,
  }),
}

/** The address of the dashboard, for links to it. */
export const dashboardUrlSetting = setting.text({
  env: 'DASHBOARD_URL',
  description:
    'The URL at which browsers reach the dashboard, for links to it. If it begins with https:, browsers send the session by https only. `start` sets it.',
  default: null,
  pattern: /^https?:\/\/[^\s/?#@]+\/?$/,
  bound: 'a URL of http or https without a path',
  agreed: true,
})

/** A setting of the API, which `sluice doctor` compares with Redis. */
export const redisReplicasSetting = setting.wholeNumber({
  env: 'REDIS_REPLICAS',
  description:
    'How many replicas of Redis must have a job before a 202, or a 504 that promises it, is answered. Otherwise the answer is 504 `acceptance_unknown`. Needs one replica more, so that one may be away.',
  default: 0,
  max: 8,
})

// The pattern refuses URLs that fail only later: a connection with an impossible port or database would end for good.
const PORT = '(?::(?:[1-5]?\\d{1,4}|6[0-4]\\d{3}|65[0-4]\\d\\d|655[0-2]\\d|6553[0-5]))?'
const HOST = `(?:\\[[^\\s\\]]+\\]|[^\\s:,/?#@[\\]]+)${PORT}`
const USER = '(?:(?:[^\\s?%]|%[\\da-fA-F]{2})*@)?'
const HOSTS = `${USER}${HOST}(?:,${HOST})*`
const REST = '(?:/\\d*)?(?:\\?\\S*)?'
const ofSentinels = `\\+sentinel://${HOSTS}/(?:[^\\s/?%]|%[\\da-fA-F]{2})+${REST}`

/** The settings of every process. Each app declares its own in addition. */
export const processSettings = {
  redisUrl: setting.text({
    env: 'REDIS_URL',
    description: 'Redis, where accepted requests wait for a worker: a server, or Sentinels or a cluster that know it.',
    default: 'redis://127.0.0.1:6379',
    pattern: new RegExp(`^rediss?(?:://${USER}${HOST}${REST}|\\+cluster://${HOSTS}/?|${ofSentinels})$`),
    bound:
      'a URL like redis://HOST:PORT, redis+sentinel://HOST,HOST/NAME or redis+cluster://HOST,HOST, or that begins with rediss, for TLS; % and ? in a password are %25 and %3F',
    secret: true,
  }),
  redisChecks: setting.choice({
    env: 'REDIS_CHECKS',
    description:
      'What follows if Redis writes no append-only file or has less memory than MIN_REDIS_MEMORY: a line in the log, or that the process does not start and ends. A Redis that evicts is always refused.',
    default: 'warn',
    choices: ['warn', 'refuse'],
  }),
  minRedisMemory: setting.wholeNumber({
    env: 'MIN_REDIS_MEMORY',
    description: 'How much memory Redis must have, in bytes. The bounds of all that is kept there add up to less.',
    default: 2_147_483_648,
  }),
  mongodbUrl: setting.text({
    env: 'MONGODB_URL',
    description: 'MongoDB, where sources, quotes and keys are stored; its path names the database.',
    default: 'mongodb://127.0.0.1:27017/sluice',
    maxLength: 10_000,
    pattern: /^mongodb(\+srv)?:\/\/[^/\s]\S*$/i,
    bound: 'a URL that begins with mongodb:// or mongodb+srv://',
    secret: true,
  }),
  queue: setting.text({
    env: 'QUEUE',
    description: 'The queue that carries requests from the API to the workers.',
    default: 'ingest',
    maxLength: 100,
    // BullMQ joins the parts of its Redis keys with colons.
    pattern: /^[\w.-]+$/,
    bound: 'at most 100 letters, digits, dots, dashes and underscores',
    agreed: true,
  }),
  logLevel: setting.choice({
    env: 'LOG_LEVEL',
    description: 'The least severe log lines that are written.',
    default: 'info',
    choices: ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'],
  }),
  adminPort: setting.wholeNumber({
    env: 'ADMIN_PORT',
    description: 'The port of `/livez`, `/readyz` and `/metrics`; 0 takes any free one.',
    default: 9464,
    max: 65_535,
  }),
  adminHost: setting.text({
    env: 'ADMIN_HOST',
    description: 'The address that the admin port listens on. It has no login: open it to your own network at most.',
    default: '127.0.0.1',
    maxLength: 253,
  }),
  shutdownGraceSeconds: setting.number({
    env: 'SHUTDOWN_GRACE_SECONDS',
    description: 'How long a process may finish its work after a request to stop.',
    default: 20,
    min: 1,
    max: 3_600,
  }),
  // The exporter reads the endpoint, and OTEL_EXPORTER_OTLP_HEADERS, from the environment.
  otlpEndpoint: setting.text({
    env: 'OTEL_EXPORTER_OTLP_ENDPOINT',
    description:
      'Where traces are sent, by OTLP over HTTP in JSON, such as http://127.0.0.1:4318. Without it nothing is traced; ids of the traces of callers are passed on all the same.',
    default: null,
    maxLength: 2_000,
    pattern: /^https?:\/\/\S+$/,
    bound: 'a URL that begins with http:// or https://',
  }),
  traceRatio: setting.number({
    env: 'OTEL_TRACES_SAMPLER_ARG',
    description: 'The share of traces that are recorded, of those that begin here. A caller decides for its own.',
    default: 1,
    max: 1,
  }),
}
