// Declares the metrics of a worker process.
import type { Durations } from '@sluice/boot/durations'
import type { ProcessReport } from '@sluice/boot/heartbeats'
import type { CountsBy, Outcome } from '@sluice/contract'
import { type MetricsOf, metric, mongoMetrics, SECONDS, totalOf } from '@sluice/process'

/** Buckets for times that include a wait in the queue. */
const LONG_SECONDS = [
  0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1_800,
] as const

export const workerMetrics = {
  stored: metric.counter({
    name: 'sluice_threads_stored_total',
    help: 'Stored threads, by the outcome for their source. Each counts once, when its job completes or fails for good.',
    labels: ['outcome'],
  }),
  threadsFailed: metric.counter({
    name: 'sluice_threads_failed_total',
    help: 'Threads that could not be stored when their job failed for good. They count again after a retry.',
  }),
  failed: metric.counter({
    name: 'sluice_jobs_failed_total',
    help: 'Failed attempts. `final="true"`: the job failed for good.',
    labels: ['final'],
  }),
  uncompleted: metric.counter({
    name: 'sluice_completions_refused_total',
    help: 'Attempts whose threads were stored, but whose job Redis refused to complete.',
  }),
  returned: metric.counter({
    name: 'sluice_jobs_put_back_total',
    help: 'Jobs that were returned because MongoDB was unavailable.',
  }),
  storeFlickers: metric.counter({
    name: 'sluice_store_flickers_total',
    help: 'Times that MongoDB was unavailable for less than two seconds.',
  }),
  queueTime: metric.histogram({
    name: 'sluice_job_queue_seconds',
    help: 'Time from accepting a job until its last fetch, with earlier attempts.',
    labels: ['lane'],
    buckets: LONG_SECONDS,
  }),
  storeTime: metric.histogram({
    name: 'sluice_job_store_seconds',
    help: 'Time from the last fetch of a job until its threads are stored.',
    labels: ['lane'],
    buckets: SECONDS,
  }),
  totalTime: metric.histogram({
    name: 'sluice_job_seconds',
    help: 'Time from accepting a job until its threads are stored: the sum of these two.',
    labels: ['lane'],
    buckets: LONG_SECONDS,
  }),
  batchSize: metric.histogram({
    name: 'sluice_batch_threads',
    help: 'Threads in one batch.',
    buckets: [1, 2, 4, 8, 16, 32, 64, 128, 256],
  }),
  batchTime: metric.histogram({
    name: 'sluice_batch_store_seconds',
    help: 'Time to store a batch.',
    buckets: SECONDS,
  }),
  storeAvailable: metric.gauge({
    name: 'sluice_store_available',
    help: '1 if MongoDB commits the writes of this worker within five seconds, otherwise 0.',
  }),
  storeProbe: metric.gauge({
    name: 'sluice_store_probe_seconds',
    help: 'Time of the last small write by which this worker probed MongoDB, every five seconds.',
  }),
  ...mongoMetrics,
}

export type WorkerMetrics = MetricsOf<typeof workerMetrics>

/** Reads the content of a worker's heartbeat. */
export async function readWorker(
  { stored, threadsFailed, uncompleted, storeFlickers, batchTime }: WorkerMetrics,
  durations: Durations,
  state: Pick<ProcessReport, 'unavailable' | 'storeMs' | 'slowJobs' | 'activeJobs' | 'uncompleted'>,
): Promise<ProcessReport> {
  const storedAs = (outcome: Outcome) => totalOf(stored, (labels) => labels.outcome === outcome)
  const counts: Record<CountsBy<'worker'>, number> = {
    'stored:created': await storedAs('created'),
    'stored:updated': await storedAs('updated'),
    'stored:unchanged': await storedAs('unchanged'),
    failed: await totalOf(threadsFailed),
  }
  const totals = {
    ...counts,
    uncompleted: await totalOf(uncompleted),
    storeFlickers: await totalOf(storeFlickers),
  }
  const batches = (await batchTime.get()).values
  const batchOf = (end: string) =>
    batches.find(({ metricName }) => metricName?.endsWith(end))?.value ?? 0
  const recentTotals = {
    batches: batchOf('_count'),
    batchMs: Math.round(batchOf('_sum') * 1000),
    storeFlickers: totals.storeFlickers,
  }
  const { longest, ...taken } = durations.take()
  const peaks = { ...longest, ...(state.unavailable && { away: state.unavailable.ms / 1000 }) }
  return { totals, recentTotals, peaks, ...taken, ...state }
}
