import assert from 'node:assert/strict'
import type { Status } from '@sluice/contract'
import { createPrinter } from '@sluice/terminal'
import { test } from 'vitest'
import { printedOn } from '../commands.test-support.ts'
import type { AdminClient } from './admin-client.ts'
import { statusCommand } from './queue-commands.ts'

const POINT: Status['lastHour'] = {
  at: '2024-05-01T09:25:00.000Z',
  minutes: 5,
  accepted: 1_200,
  stored: { created: 1_100, updated: 60, unchanged: 20 },
  failed: 1,
  refused: 3,
  refusedByTenant: { acme: 3, globex: 1 },
  coveredSeconds: 240,
  timedOut: 2,
  forbidden: 7,
  invalid: 5,
  totalTime: { bulk: { p50: 0.03, p95: 1.2, p99: 1.4 } },
  queueTime: { p50: 0.02, p99: 1.3 },
  waiting: { interactive: 0, bulk: 7 },
  oldestSeconds: { interactive: 0, bulk: 2 },
}

const STATUS: Status = {
  at: '2024-05-01T09:30:00.000Z',
  queued: [
    { lane: 'interactive', state: 'active', jobs: 0, threads: 0, oldestMs: 0 },
    { lane: 'bulk', state: 'waiting', jobs: 1_203, threads: 60_000, oldestMs: 40_000 },
  ],
  paused: { bulk: { by: '8f14', since: '2024-05-01T09:00:00.000Z' } },
  tenants: [{ tenant: 'acme\u202e', threads: 60_000 }],
  processes: [
    {
      ...{
        id: 'p',
        kind: 'worker',
        version: '0.1.0',
        host: 'host-1',
        pid: 42,
        startedAt: '2024-05-01T00:00:00.000Z',
      },
      ...{ seenMsAgo: 1_300, cpu: 0.42, memoryBytes: 150_000_000 },
      slowJobs: [{ id: 'j', name: 'slack/thread-1', activeMs: 12_000 }],
    },
  ],
  redis: { usedBytes: 12_000_000, maxBytes: 2_147_483_648 },
  verdict: [
    {
      code: 'store_away',
      level: 'problem',
      text: 'MongoDB has been unavailable for 40 s; 1,203 jobs wait',
      page: '/jobs',
    },
    {
      code: 'failed_threads',
      level: 'note',
      text: '2 threads could not be stored',
      page: '/failures',
    },
  ],
  lastMinutes: POINT,
  lastHour: { ...POINT, minutes: 60, coveredSeconds: 3_600 },
}

/** Runs `sluice status …` and returns what it prints. */
async function terminal(args: string[] = [], status = STATUS): Promise<string> {
  const printed: string[] = []
  const client: Pick<AdminClient, 'status'> = { status: async () => status }
  const openClient = async () => client
  const print = createPrinter((text) => void printed.push(text.slice(0, -1)))
  const command = statusCommand({
    ...{ env: {}, openClient, printLines: printedOn(print), show: assert.fail },
    readDirectly: () => assert.fail(),
  })
  await command.parseAsync(args, { from: 'user' })
  return printed.join('\n')
}

test('a tenant with a long name is listed once, although heartbeats cut the name', async () => {
  const tenant = 'x'.repeat(70)
  const lastHour = { ...STATUS.lastHour, refusedByTenant: { ['x'.repeat(64)]: 2 } }
  const printed = await terminal([], { ...STATUS, tenants: [{ tenant, threads: 5 }], lastHour })
  assert.deepEqual(
    printed.match(/xxx.*/g)?.map((row) => row.split(/ +/).slice(1)),
    [['5', '2']],
  )
})

test('the status says in words what stands still, and shows queue, rates, processes and tenants', async () => {
  const expected = [
    'MongoDB has been unavailable for 40 s; 1,203 jobs wait.',
    '2 threads could not be stored.',
    '2024-05-01T09:30:00.000Z',
    '',
    'LANE  STATE    JOBS   THREADS  OLDEST',
    'bulk  waiting  1,203  60,000   40s',
    'Redis uses 12 MB of 2,147 MB.',
    '',
    'LAST  ACCEPTED TO STORED  P50    P95       P99',
    '5m    bulk                30 ms  1,200 ms  1,400 ms',
    '5m    in queue            20 ms  -         1,300 ms',
    '1h    bulk                30 ms  1,200 ms  1,400 ms',
    '1h    in queue            20 ms  -         1,300 ms',
    '',
    'LAST  ACCEPTED       STORED         FAILED  REFUSED  TIMED OUT  FORBIDDEN  INVALID',
    '5m    1,200 (5.0/s)  1,180 (4.9/s)  1       3        2          7          5',
    '1h    1,200 (0.3/s)  1,180 (0.3/s)  1       3        2          7          5',
    '',
    'PROCESS  HOST       VERSION  STARTED                   SEEN      CPU  MEMORY',
    'worker   host-1:42  0.1.0    2024-05-01T00:00:00.000Z  1.3s ago  42%  150 MB',
    'host-1:42 has had j for 12s: slack/thread-1',
    '',
    'TENANT  THREADS  REFUSED 1h',
    'acme\ufffd   60,000   0',
    'acme    0        3',
    'globex  0        1',
  ]
  assert.deepEqual((await terminal()).split('\n'), expected)
})

test('the status shows how full the queue is, also for callers that wait', async () => {
  const queueBounds = { threads: 200_000, bytes: 1e9, interactive: 500 }
  const [process] = STATUS.processes
  assert(process)
  const api = { ...process, kind: 'api' as const, queueBounds, tenantShare: 0.5, slowJobs: [] }
  const queued = [
    { lane: 'interactive' as const, state: 'waiting' as const, jobs: 1, threads: 450, oldestMs: 0 },
  ]
  const load = { threads: 594, bytes: 2e6 }
  assert.match(
    await terminal([], { ...STATUS, processes: [api], queued, load }),
    /^The queue has 594 of 200,000 threads, 450 of 500 interactive, 2 MB of 1,000 MB; a tenant may use 50% of each\.$/m,
  )
})

test('--json prints the whole answer', async () => {
  assert.deepEqual(JSON.parse(await terminal(['--json'])), STATUS)
})

test('a status without a problem begins with the words that all is well', async () => {
  const notes = STATUS.verdict?.filter(({ level }) => level === 'note') ?? []
  assert.match(
    await terminal([], { ...STATUS, verdict: notes }),
    /^All is well\.\n2 threads could not be stored\.\n/,
  )
})
