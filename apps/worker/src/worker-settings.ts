import { processSettings, setting, waitSetting } from '@sluice/ops'

/** What a worker can be told, besides what every process can. */
export const workerSettings = {
  ...processSettings,
  concurrency: setting.wholeNumber({
    env: 'CONCURRENCY',
    description: 'How many jobs one worker process holds at a time: what waits is taken in batches of up to as many.',
    default: 128,
    min: 1,
    max: 1_000,
  }),
  bulkConcurrency: setting.wholeNumber({
    env: 'BULK_CONCURRENCY',
    description:
      'How many jobs that nobody waits for one worker process holds; it takes some half a megabyte of them at a time.',
    default: 64,
    min: 1,
    max: 256,
  }),
  batchDocuments: setting.wholeNumber({
    env: 'BATCH_DOCUMENTS',
    description: 'How many sources and quotes one batch writes at most (a single larger request goes alone).',
    default: 4_000,
    min: 1,
  }),
  resultBytes: setting.wholeNumber({
    env: 'RESULT_BYTES',
    description: 'How many bytes of Redis the results of finished jobs may take; past it the oldest go first.',
    default: 268_435_456,
    min: 1_048_576,
  }),
  failedBytes: setting.wholeNumber({
    env: 'FAILED_BYTES',
    description: 'How many bytes of Redis failed jobs may take; past it the oldest go first.',
    default: 268_435_456,
    min: 1_048_576,
  }),
  toldResultSeconds: setting.wholeNumber({
    env: 'TOLD_RESULT_SECONDS',
    description: 'How long the result of a job stays readable whose id a caller was told.',
    default: 3_600,
    min: 1,
  }),
  waitSeconds: waitSetting,
}
