// The settings of a worker process.
import { agreedSettings, dashboardUrlSetting, processSettings, setting } from '@sluice/process'

/** A worker's settings: those of every process, and its own. */
export const workerSettings = {
  ...processSettings,
  dashboardUrl: dashboardUrlSetting,
  concurrency: setting.wholeNumber({
    env: 'CONCURRENCY',
    description: 'How many interactive jobs (a caller waits for each) one worker process locks at a time.',
    default: 128,
    min: 1,
    max: 1_000,
  }),
  bulkConcurrency: setting.wholeNumber({
    env: 'BULK_CONCURRENCY',
    description:
      'How many bulk jobs (of imports, and of callers that do not wait) one worker process locks at a time. One fetch takes about half a megabyte of them.',
    default: 64,
    min: 1,
    max: 256,
  }),
  bytesInHand: setting.wholeNumber({
    env: 'MAX_BYTES_IN_HAND',
    description:
      'How many bytes of requests, as Redis has them, one worker process locks at a time: three quarters interactive, one quarter bulk. A larger job is locked as the only one of its lane.',
    default: 67_108_864,
    min: 1_048_576,
  }),
  resultBytes: setting.wholeNumber({
    env: 'RESULT_BYTES',
    description:
      'How many bytes of Redis the results of completed jobs may take. Beyond it, the oldest are evicted first, those with an id at /jobs only of the tenant that has the most. The list of jobs that completed last takes up to an eighth of it more.',
    default: 268_435_456,
    min: 1_048_576,
  }),
  failedBytes: setting.wholeNumber({
    env: 'FAILED_BYTES',
    description: 'How many bytes of Redis failed jobs may take. Beyond it, the oldest are evicted first.',
    default: 268_435_456,
    min: 1_048_576,
  }),
  retainedResultSeconds: setting.wholeNumber({
    env: 'RETAINED_RESULT_SECONDS',
    description: 'How long GET /jobs/{id} answers with the result of a completed job.',
    default: 3_600,
    min: 1,
  }),
  ...agreedSettings,
}
