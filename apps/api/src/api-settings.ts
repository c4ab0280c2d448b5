import { DEFAULT_LIMITS, LIMIT_DETAILS, type LimitName } from '@sluice/contract'
import { processSettings, setting, waitSetting } from '@sluice/ops'

const limit = (env: string, name: LimitName) =>
  setting.wholeNumber({
    env,
    description: `${LIMIT_DETAILS[name].description} In ${LIMIT_DETAILS[name].unit}.`,
    default: DEFAULT_LIMITS[name],
    min: 1,
  })

/** How much a batch may hold when nothing else is configured. How many items an array has is no setting: who has more sends lines. */
export const BATCH_LIMITS = {
  batchBytes: {
    default: 104_857_600,
    unit: 'bytes',
    description: 'Size of a batch in NDJSON, before and after it is inflated.',
  },
  batchItems: {
    default: 1_000,
    unit: 'threads',
    description: 'Number of threads in a batch that is sent as a JSON array.',
  },
} as const

/** What the API can be told, besides what every process can. */
export const apiSettings = {
  ...processSettings,
  port: setting.wholeNumber({
    env: 'PORT',
    description: 'The port of the API; 0 takes any free one.',
    default: 3000,
    max: 65_535,
  }),
  host: setting.text({
    env: 'HOST',
    description: 'The address that the API listens on.',
    default: '127.0.0.1',
    maxLength: 253,
  }),
  waitSeconds: waitSetting,
  bodyBytes: limit('MAX_BODY_BYTES', 'bodyBytes'),
  batchBytes: setting.wholeNumber({
    env: 'MAX_BATCH_BYTES',
    description: `${BATCH_LIMITS.batchBytes.description} In ${BATCH_LIMITS.batchBytes.unit}.`,
    default: BATCH_LIMITS.batchBytes.default,
    min: 1,
  }),
  spillBytes: setting.wholeNumber({
    env: 'MAX_SPILL_BYTES',
    description: "How much of a batch's answer that its caller does not read may lie in a temporary file. In bytes.",
    default: 536_870_912,
    min: 1,
  }),
  quotes: limit('MAX_QUOTES', 'quotes'),
  externalId: limit('MAX_EXTERNAL_ID', 'externalId'),
  title: limit('MAX_TITLE', 'title'),
  text: limit('MAX_TEXT', 'text'),
  url: limit('MAX_URL', 'url'),
  description: limit('MAX_DESCRIPTION', 'description'),
  string: limit('MAX_STRING', 'string'),
}
