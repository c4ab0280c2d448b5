// The settings of a worker process.
import { agreedSettings, dashboardUrlSetting, processSettings, setting } from '@sluice/process'

/** A worker's settings: the settings that every process has, and the worker's own. */
export const workerSettings = {
  ...processSettings,
  dashboardUrl: dashboardUrlSetting,
  concurrency: setting.wholeNumber({
    env: 'CONCURRENCY',
    description: 'Interactive jobs (a caller waits for each) that one worker locks at a time.',
    default: 128,
    min: 1,
    max: 1_000,
  }),
  bulkConcurrency: setting.wholeNumber({
    env: 'BULK_CONCURRENCY',
    description:
      'Bulk jobs (of imports, and of callers that do not wait) that one worker locks at a time.',
    default: 64,
    min: 1,
    max: 256,
  }),
  bytesInHand: setting.wholeNumber({
    env: 'MAX_BYTES_IN_HAND',
    description:
      'Bytes of jobs that one worker locks at a time: three quarters interactive, one quarter bulk. A larger job is the only one of its lane.',
    default: 67_108_864,
    min: 1_048_576,
  }),
  resultBytes: setting.wholeNumber({
    env: 'RESULT_BYTES',
    description:
      'Bytes of Redis for results of completed jobs. Above it, the oldest are evicted first. The list of the last completed jobs takes an eighth more.',
    default: 268_435_456,
    min: 1_048_576,
  }),
  failedBytes: setting.wholeNumber({
    env: 'FAILED_BYTES',
    description: 'Bytes of Redis for failed jobs. Above it, the oldest are evicted first.',
    default: 268_435_456,
    min: 1_048_576,
  }),
  retainedResultSeconds: setting.wholeNumber({
    env: 'RETAINED_RESULT_SECONDS',
    description: 'How long GET /jobs/{id} returns the result of a completed job.',
    default: 3_600,
    min: 1,
  }),
  ...agreedSettings,
}
