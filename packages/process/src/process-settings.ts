// Declares the settings that several processes share.
import { setting } from './settings.ts'

/**
 * The settings on which the API and the workers must agree. For the API, workers keep results for
 * twice the time that callers wait, create the index for lists of sources, and add results to
 * idempotency keys.
 */
export const agreedSettings = {
  waitSeconds: setting.number({
    env: 'WAIT_SECONDS',
    description: 'How long the API lets a caller wait.',
    default: 30,
    min: 0.1,
    max: 3_600,
    agreed: true,
  }),
  listSources: setting.choice({
    env: 'LIST_SOURCES',
    description:
      'Whether GET /sources lists sources. Costs a tenth to a sixth of the rate of new sources.',
    default: 'off',
    choices: ['on', 'off'],
    agreed: true,
  }),
  claimBytes: setting.wholeNumber({
    env: 'IDEMPOTENCY_BYTES',
    description:
      'Bytes of Redis for idempotency keys with their results. Above it, the tenant with the most loses its oldest keys.',
    default: 134_217_728,
    min: 1_048_576,
    agreed: true,
  }),
}

/** How long the API keeps threads, which the command line shows, too. */
export const retainDaysSetting = setting.wholeNumber({
  env: 'RETAIN_DAYS',
  description:
    'Days after its last post when a thread is deleted, if `sluice tenants retain` has no rule for it. 0: never.',
  default: 0,
  max: 36_500,
})

/** The address of the dashboard, to which other programs link. */
export const dashboardUrlSetting = setting.text({
  env: 'DASHBOARD_URL',
  description:
    'The URL at which browsers reach the dashboard, for links. With https:, browsers send the session by https only.',
  default: null,
  pattern: /^https?:\/\/[^\s/?#@]+\/?$/,
  bound: 'a URL of http or https without a path',
  agreed: true,
})

/** A setting of the API, which `sluice doctor` compares with Redis. */
export const redisReplicasSetting = setting.wholeNumber({
  env: 'REDIS_REPLICAS',
  description:
    'How many replicas of Redis must have a job before the API promises it by a 202 or 504. Run one replica more.',
  default: 0,
  max: 8,
})

// The pattern refuses URLs that would fail only later. With an impossible port or database, a
// connection would end and never reconnect.
const PORT = '(?::(?:[1-5]?\\d{1,4}|6[0-4]\\d{3}|65[0-4]\\d\\d|655[0-2]\\d|6553[0-5]))?'
const HOST = `(?:\\[[^\\s\\]]+\\]|[^\\s:,/?#@[\\]]+)${PORT}`
const USER = '(?:(?:[^\\s?%]|%[\\da-fA-F]{2})*@)?'
const HOSTS = `${USER}${HOST}(?:,${HOST})*`
const REST = '(?:/\\d*)?(?:\\?\\S*)?'
// MongoDB's driver would name the fault, but not the setting.
const OF_MONGODB = '(?:[^\\s:/?#[\\]@%]|%[\\da-fA-F]{2})*'
const DATABASE = '[^\\s/\\\\."$*<>:|?%#]*'
const ofSentinels = `\\+sentinel://${HOSTS}/(?:[^\\s/?%]|%[\\da-fA-F]{2})+${REST}`

/** The settings of every process. Each app declares further ones. */
export const processSettings = {
  redisUrl: setting.text({
    env: 'REDIS_URL',
    description: 'The Redis in which accepted requests wait: a server, Sentinels or a cluster.',
    default: 'redis://127.0.0.1:6379',
    pattern: new RegExp(
      `^rediss?(?:://${USER}${HOST}${REST}|\\+cluster://${HOSTS}/?|${ofSentinels})$`,
    ),
    bound:
      'a URL like redis://HOST:PORT, redis+sentinel://HOST,HOST/NAME or redis+cluster://HOST,HOST, or that begins with rediss, for TLS; % and ? in a password are %25 and %3F',
    secret: true,
  }),
  redisChecks: setting.choice({
    env: 'REDIS_CHECKS',
    description:
      'Without an append-only file, or with less memory than MIN_REDIS_MEMORY: a warning, or the process stops. It always stops if Redis evicts.',
    default: 'warn',
    choices: ['warn', 'refuse'],
  }),
  minRedisMemory: setting.wholeNumber({
    env: 'MIN_REDIS_MEMORY',
    description: 'The memory that Redis must have, in bytes.',
    default: 2_147_483_648,
  }),
  mongodbUrl: setting.text({
    env: 'MONGODB_URL',
    description: 'The MongoDB that stores sources, quotes and keys. The path names the database.',
    default: 'mongodb://127.0.0.1:27017/sluice',
    maxLength: 10_000,
    pattern: new RegExp(
      `^mongodb(?:\\+srv)?://(?:${OF_MONGODB}(?::${OF_MONGODB})?@)?${HOST}(?:,${HOST})*(?:/${DATABASE})?(?:\\?\\S*)?$`,
    ),
    bound:
      'a URL like mongodb://USER:PASSWORD@HOST:PORT,HOST:PORT/DATABASE or mongodb+srv://HOST/DATABASE; @, :, / and % in a password are %40, %3A, %2F and %25',
    secret: true,
  }),
  queue: setting.text({
    env: 'QUEUE',
    description: 'The queue between API and workers. The same for all processes.',
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
    description: 'The port of `/livez`, `/readyz` and `/metrics`. 0: any free one.',
    default: 9464,
    max: 65_535,
  }),
  adminHost: setting.text({
    env: 'ADMIN_HOST',
    description:
      'The address of the admin port. It has no login: open it to your own network at most.',
    default: '127.0.0.1',
    maxLength: 253,
  }),
  shutdownGraceSeconds: setting.number({
    env: 'SHUTDOWN_GRACE_SECONDS',
    description: 'How long a process that stops may finish its work.',
    default: 20,
    min: 1,
    max: 3_600,
  }),
  // The exporter reads the endpoint, and OTEL_EXPORTER_OTLP_HEADERS, from the environment.
  otlpEndpoint: setting.text({
    env: 'OTEL_EXPORTER_OTLP_ENDPOINT',
    description:
      'Where to send traces, by OTLP over HTTP in JSON, such as http://127.0.0.1:4318. Without it, nothing is traced.',
    default: null,
    maxLength: 2_000,
    pattern: /^https?:\/\/\S+$/,
    bound: 'a URL that begins with http:// or https://',
  }),
  traceRatio: setting.number({
    env: 'OTEL_TRACES_SAMPLER_ARG',
    description:
      'The share of traces to record. A caller that sends `traceparent` decides for its own.',
    default: 1,
    max: 1,
  }),
}
