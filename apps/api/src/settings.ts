// The settings of the API. Callers see some of them as limits.
import { LIMIT_DETAILS, type LimitName, type LimitsAnswer } from '@sluice/contract'
import type { Settings } from '@sluice/process'
import {
  agreedSettings,
  processSettings,
  redisReplicasSetting,
  retainDaysSetting,
  setting,
} from '@sluice/process'

const limit = (env: string, name: LimitName, max?: number) =>
  setting.wholeNumber({
    env,
    description: LIMIT_DETAILS[name].description,
    default: LIMIT_DETAILS[name].default,
    min: 1,
    ...(max !== undefined && { max }),
  })

/**
 * The limit of an import as an array. It is no setting, because a caller with more items can send
 * lines.
 */
export const IMPORT_ITEMS = {
  value: 1_000,
  unit: 'threads',
  description: 'Number of threads in an import that is sent as a JSON array.',
}

/**
 * An answer up to this size is free. Above it, each further kilobyte costs one quote, as a kilobyte
 * of refused text does.
 */
export const FREE_ANSWER_BYTES = 64 * 1024

/** The API's settings: the settings that every process has, and the API's own. */
export const apiSettings = {
  ...processSettings,
  port: setting.wholeNumber({
    env: 'PORT',
    description: 'The port of the API. 0: any free one.',
    default: 3000,
    max: 65_535,
  }),
  host: setting.text({
    env: 'HOST',
    description: 'The address that the API listens on.',
    default: '127.0.0.1',
    maxLength: 253,
  }),
  ...agreedSettings,
  redisReplicas: redisReplicasSetting,
  bodyBytes: limit('MAX_BODY_BYTES', 'bodyBytes'),
  importBytes: limit('MAX_IMPORT_BYTES', 'importBytes'),
  spillBytes: setting.wholeNumber({
    env: 'MAX_SPILL_BYTES',
    description: 'Size of all temporary files for unread answers of imports.',
    default: 1_073_741_824,
    min: 1,
  }),
  queueThreads: setting.wholeNumber({
    env: 'MAX_QUEUE_THREADS',
    description:
      'Accepted threads that are not yet stored. Above it, requests get a 503. The same for all API replicas.',
    default: 200_000,
    min: 100,
  }),
  queueBytes: setting.wholeNumber({
    env: 'MAX_QUEUE_BYTES',
    description:
      'Bytes of Redis for these threads. Above it, requests get a 503. The same for all API replicas.',
    default: 1_073_741_824,
    min: 33_554_432,
  }),
  waitingSeconds: setting.number({
    env: 'MAX_WAITING_SECONDS',
    description:
      'Threads for which callers wait, in seconds at the measured rate (at least 500 threads). Above it, callers get a 503.',
    default: 5,
    min: 1,
    max: 86_400,
  }),
  tenantShare: setting.number({
    env: 'TENANT_SHARE',
    description:
      'The share of these three bounds, MAX_BODIES_BYTES, MAX_SPILL_BYTES and large posts that one tenant may use.',
    default: 0.5,
    min: 0.01,
    max: 1,
  }),
  quotesPerSecond: setting.wholeNumber({
    env: 'QUOTES_PER_SECOND',
    description: 'Quotes a second that one key may post in the long run. Above it, it gets a 429.',
    default: 10_000,
    min: 1,
    max: 1_000_000_000,
  }),
  burstQuotes: setting.wholeNumber({
    env: 'BURST_QUOTES',
    description: 'Quotes that one key may post at once after a pause.',
    default: 600_000,
    min: 1,
    max: 1_000_000_000,
  }),
  operationJobsPerSecond: setting.wholeNumber({
    env: 'OPERATION_JOBS_PER_SECOND',
    description:
      'Failed jobs that all API replicas together retry or discard each second, or threads that they delete for `sluice tenants`.',
    default: 100,
    min: 1,
    max: 10_000,
  }),
  retainDays: retainDaysSetting,
  bodiesBytes: setting.wholeNumber({
    env: 'MAX_BODIES_BYTES',
    description: 'Memory for all request bodies in flight, and as much for all unread answers.',
    default: 268_435_456,
    min: 1,
  }),
  maxConnections: setting.wholeNumber({
    env: 'MAX_CONNECTIONS',
    description:
      'Open connections, each of which takes a file descriptor. Above it, the one that has been idle for longest is closed.',
    default: 10_000,
    min: 1,
  }),
  maxLoopDelayMs: setting.wholeNumber({
    env: 'MAX_LOOP_DELAY_MS',
    description: "POSTs get a 503 while the event loop's delay (p99 of a second) exceeds it.",
    default: 250,
    min: 1,
  }),
  nesting: limit('MAX_NESTING', 'nesting'),
  jsonValues: limit('MAX_JSON_VALUES', 'jsonValues'),
  // The index of a quote in its request is stored with six digits.
  quotes: limit('MAX_QUOTES', 'quotes', 1_000_000),
  externalId: limit('MAX_EXTERNAL_ID', 'externalId'),
  title: limit('MAX_TITLE', 'title'),
  text: limit('MAX_TEXT', 'text'),
  url: limit('MAX_URL', 'url'),
  description: limit('MAX_DESCRIPTION', 'description'),
  string: limit('MAX_STRING', 'string'),
}

/** The values of the settings. */
export type ApiSettings = Settings<typeof apiSettings>

const FREE_ANSWERS =
  'Size up to which an answer charges no quota. Above it, each started kilobyte counts as one quote.'

/**
 * The answer of `GET /limits`: the bounds of requests, quota, queue and wait, each with its unit.
 */
export function limitsAnswer(settings: ApiSettings): LimitsAnswer {
  const bound = (
    name: keyof ApiSettings,
    unit: string,
    description = apiSettings[name].description,
  ) => {
    return { value: Number(settings[name]), unit, description }
  }
  const ofRequest = Object.entries(LIMIT_DETAILS).map(([name, detail]) => {
    return [name, bound(name as LimitName, detail.unit, detail.description)]
  })
  return {
    limits: { ...Object.fromEntries(ofRequest), importItems: IMPORT_ITEMS },
    quota: {
      quotesPerSecond: bound('quotesPerSecond', 'quotes per second'),
      burstQuotes: bound('burstQuotes', 'quotes'),
      freeAnswerBytes: { value: FREE_ANSWER_BYTES, unit: 'bytes', description: FREE_ANSWERS },
    },
    queue: {
      queueThreads: bound('queueThreads', 'threads'),
      queueBytes: bound('queueBytes', 'bytes'),
      waitingSeconds: bound('waitingSeconds', 'seconds'),
      tenantShare: bound('tenantShare', 'part'),
    },
    waitSeconds: bound('waitSeconds', 'seconds', 'The longest that a caller waits for its answer.'),
  }
}
