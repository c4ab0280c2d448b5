import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import type { SeenProcess } from '@sluice/contract'
import { describe, test } from 'vitest'
import { duration, type Facts, THRESHOLDS } from './finding.ts'
import { judge } from './verdict.ts'

const AT = '2024-05-01T09:30:00.000Z'
const queuedOf = (
  lane: 'interactive' | 'bulk',
  state: Facts['queued'][number]['state'],
  more: object = {},
) => {
  return { lane, state, jobs: 0, threads: 0, oldestMs: 0, ...more }
}

function processOf(
  kind: SeenProcess['kind'],
  pid: number,
  more: Partial<SeenProcess> = {},
): SeenProcess {
  const about = { version: '1.0.0', host: 'here', pid, startedAt: '2024-05-01T08:00:00.000Z' }
  return { id: `${kind}${pid}`, kind, ...about, seenMsAgo: 500, cpu: 0, memoryBytes: 0, ...more }
}

const API = processOf('api', 1, { queueBounds: { threads: 1_000, bytes: 1e9 }, redisReplicas: 0 })
const WORKER = processOf('worker', 2)

const WELL: Facts = {
  at: AT,
  queued: [queuedOf('interactive', 'waiting'), queuedOf('bulk', 'waiting')],
  paused: {},
  tenants: [],
  processes: [API, WORKER],
  redis: { usedBytes: 1e6, maxBytes: 0, replicas: 0, clockBehindMs: 0 },
  load: { threads: 0, bytes: 0 },
}

const EMPTY_HOUR: NonNullable<Facts['lastHour']> = {
  ...{
    at: AT,
    minutes: 60,
    coveredSeconds: 3_600,
    accepted: 0,
    failed: 0,
    refused: 0,
    refusedByTenant: {},
  },
  stored: { created: 0, updated: 0, unchanged: 0 },
  waiting: { interactive: 0, bulk: 0 },
  oldestSeconds: { interactive: 0, bulk: 0 },
}

const textsOf = (facts: Partial<Facts>) => judge({ ...WELL, ...facts }).map(({ text }) => text)
const SOME_WAIT = [
  queuedOf('interactive', 'waiting', { jobs: 3, threads: 3 }),
  queuedOf('bulk', 'waiting'),
]

describe('the verdict', () => {
  test('notes which keys expire within a week', () => {
    const key = {
      keyId: 'a1',
      tenant: 'acme',
      name: 'nightly',
      expiresAt: '2024-05-04T21:30:00.000Z',
    }
    const keys = [{ ...key, tenant: '', expiresAt: '2024-05-01T10:30:00.000Z' }, key, key, key, key]
    const of = (expiringKeys: NonNullable<Facts['expiringKeys']>) =>
      judge({ ...WELL, expiringKeys }).map(({ level, text }) => `${level}: ${text}`)
    assert.deepEqual(of([key]), [
      'note: 1 key expires within a week: nightly of acme (a1) in 3 d; rotate them',
    ])
    const named =
      'nightly (a1) in 60 min, nightly of acme (a1) in 3 d, nightly of acme (a1) in 3 d, 2 more'
    assert.deepEqual(of(keys), [`note: 5 keys expire within a week: ${named}; rotate them`])
  })

  test('names a refused key once for all APIs, and takes only an expired one for a problem', () => {
    const refused = { keyId: '0123456789ab', tenant: 'acme', requests: 3, lastMsAgo: 9_000 }
    const of = (why: 'expired' | 'revoked' | 'gone' | 'role', more = {}) => [
      { ...refused, why, ...more },
    ]
    const apis = [
      { ...API, refusedKeys: [...of('expired'), ...of('role', { keyId: 'b' })] },
      processOf('api', 3, {
        refusedKeys: [...of('expired', { requests: 1_230, lastMsAgo: 4_000 })],
      }),
      processOf('api', 4, { refusedKeys: of('revoked', { keyId: 'c', tenant: '', requests: 1 }) }),
      processOf('api', 4, {
        refusedKeys: [
          ...of('gone', { keyId: 'perhaps restored', lastMsAgo: 60_000 }),
          ...['e', 'f', 'g', 'h'].flatMap((keyId) => of('gone', { keyId })),
        ],
      }),
      processOf('api', 5, { refusedKeys: of('expired', { keyId: 'd' }), seenMsAgo: 20_000 }),
      processOf('api', 6, { startedAt: AT }),
    ]
    const found = judge({ ...WELL, processes: [...apis, WORKER] })
    const ofKeys = found.filter(({ code }) => code.startsWith('key'))
    assert.deepEqual(
      ofKeys.map(({ level, text, page }) => [level, text, page]),
      [
        [
          'problem',
          'Keys that worked are no longer in MongoDB: e of acme, f of acme, g of acme …; restore the collection `keys`',
          '/overview',
        ],
        [
          'problem',
          'The key 0123456789ab of acme has expired, and is still used: 1,233 requests refused, the last one 4 s ago; create another one for its caller, or revoke it',
          '/tenants/acme',
        ],
        [
          'note',
          'The key c is revoked, and is still used: 1 request refused, the last one 9 s ago',
          '/overview',
        ],
      ],
    )
  })

  test('a service without a fault has none', () => {
    assert.deepEqual(judge(WELL), [])
  })

  test('says since when MongoDB is unavailable, for whom and why', () => {
    const lost = processOf('worker', 3, { storeAwayMs: 94_000 })
    const outage = {
      storeAwayMs: 94_000,
      storeAway: { since: AT, reason: 'MongoDB is unavailable: no primary' },
      queued: SOME_WAIT,
    }
    const text =
      'MongoDB has been unavailable for 94 s, for 1 of 2 workers (no primary); 3 jobs wait'
    assert.deepEqual(textsOf({ ...outage, processes: [API, WORKER, lost] }), [text])
  })

  test('says how slow MongoDB is, and how fast it was, unless it is unavailable', () => {
    const slow = { ...WORKER, storeMs: 3_100, recent: { batches: 2, batchMs: 28_000 } }
    const point = { ...EMPTY_HOUR, storeTime: { p50: 0.2, p99: 4 } }
    assert.deepEqual(textsOf({ processes: [API, slow], lastHour: point }), [
      'MongoDB is slow: a small write takes 3.1 s, and a batch 14.0 s (in the last hour, half of the threads took less than 0.2 s)',
    ])
    const idle = { ...slow, recent: { batches: 0, batchMs: 0 } }
    assert.deepEqual(textsOf({ processes: [API, idle] }), [
      'MongoDB is slow: a small write takes 3.1 s',
    ])
    assert.deepEqual(textsOf({ processes: [API, { ...slow, storeMs: 1_000 }] }), [])
    assert.match(
      textsOf({ processes: [API, slow], storeAwayMs: 9_000 }).join(),
      /^MongoDB has been unavailable for 9 s; [^;]*$/,
    )
  })

  test('a MongoDB that is lost for less than two seconds is unstable if that happens again and again', () => {
    const flickering = (storeFlickers: number, more = {}) => {
      const counts = { lastMinute: { storeFlickers }, recent: { storeFlickers: 1 } }
      const worker = processOf('worker', 3, { ...counts, ...more })
      return textsOf({
        processes: [API, WORKER, worker],
        ...(worker.storeAwayMs !== undefined && { storeAwayMs: 40_000 }),
      })
    }
    const unstable =
      'The connection to MongoDB is unstable: a worker lost it 3 times in the last minute, each time for less than 2 s'
    assert.deepEqual([flickering(2), flickering(2, { storeAwayMs: 1_900 })], [[], []])
    assert.deepEqual([flickering(3), flickering(3, { storeAwayMs: 300 })], [[unstable], [unstable]])
    assert.deepEqual(flickering(3, { recent: { storeFlickers: 0 } }), [])
    assert.match(
      flickering(3, { storeAwayMs: 2_000 }).join(),
      /^MongoDB has been unavailable for 40 s, for 1 of 2 workers; 0 jobs wait$/,
    )
  })

  test('names the kind of process of which none lives, and each one that is gone and was not replaced', () => {
    const gone = { seenMsAgo: 40_000 }
    const deadWorker = { ...WORKER, ...gone }
    assert.deepEqual(textsOf({ processes: [API, deadWorker], queued: SOME_WAIT }), [
      'No worker has shown a sign of life for 40 s; 3 jobs wait',
    ])
    assert.deepEqual(textsOf({ processes: [WORKER] }), [
      'No API has shown a sign of life; nothing is accepted',
    ])
    assert.deepEqual(textsOf({ processes: [API, deadWorker, processOf('worker', 4)] }), [
      'The worker here:2 has shown no sign of life for 40 s',
    ])
    const replacement = processOf('worker', 5, { startedAt: '2024-05-01T09:29:50.000Z' })
    assert.deepEqual(textsOf({ processes: [API, deadWorker, replacement] }), [])
    const other = processOf('worker', 6, gone)
    assert.equal(
      textsOf({ processes: [API, deadWorker, other, replacement] }).length,
      1,
      'one replaces one',
    )
  })

  test('names a worker that does not get on with a job, unless MongoDB is unavailable', () => {
    const stuck = processOf('worker', 2, {
      slowJobs: [{ id: 'j', name: 'slack/a', activeMs: 90_000 }],
    })
    assert.deepEqual(textsOf({ processes: [API, stuck] }), [
      'The worker here:2 has worked on slack/a for 90 s',
    ])
    assert.equal(judge({ ...WELL, processes: [API, stuck] })[0]?.page, `/processes/${stuck.id}`)
    assert.equal(textsOf({ processes: [API, stuck], storeAwayMs: 90_000 }).length, 1)
  })

  test('says how full queue and Redis are, that replicas are missing, and that the clock of Redis is behind', () => {
    assert.deepEqual(textsOf({ load: { threads: 850, bytes: 0 } }), [
      'The queue is nearly full: 850 of 1,000 threads, 0 MB of 1,000 MB',
    ])
    assert.match(textsOf({ load: { threads: 1, bytes: 1e9 } }).join(), /^The queue is full: /)
    const redis = { usedBytes: 9e8, maxBytes: 1e9 }
    assert.deepEqual(textsOf({ redis }), ['Redis is nearly full: 900 MB of 1,000 MB'])
    assert.match(
      textsOf({ redis: { ...redis, usedBytes: 1e9 } }).join(),
      /^Redis is full .* and refuses writes$/,
    )
    const confirming = { ...API, redisReplicas: 2 }
    assert.deepEqual(
      textsOf({ processes: [confirming, WORKER], redis: { ...WELL.redis, replicas: 1 } }),
      ['Redis has 1 of 2 replicas: requests are not confirmed'],
    )
    assert.deepEqual(textsOf({ redis: { ...WELL.redis, clockBehindMs: 60_000 } }), [
      'The clock of Redis is 60 s behind',
    ])
  })

  test('says what was refused lately and why, how many callers waited in vain, and when MAX_WAITING_SECONDS bites', () => {
    const recent = {
      requests: 200,
      refused: 184,
      'refused:keys_unavailable:': 4,
      'refused:tenant_share:a:b': 180,
    }
    const other = processOf('api', 3, { recent: { requests: 100, answered: 40, timedOut: 60 } })
    assert.deepEqual(textsOf({ processes: [{ ...API, recent }, other, WORKER] }), [
      '60 % (60 of 100) of the callers that waited got no result in time, in the last 10 s',
      '62 % (184 of 300) of the requests of the last 10 s were refused: tenant_share (a:b), keys_unavailable',
    ])
    const few = { ...API, recent: { requests: 1_000, refused: 10, answered: 990, timedOut: 9 } }
    assert.deepEqual(textsOf({ processes: [few, WORKER] }), [])
    const bounded = { ...API, queueBounds: { threads: 200_000, bytes: 1e9, interactive: 500 } }
    const queued = [
      queuedOf('interactive', 'active', { threads: 100 }),
      queuedOf('interactive', 'waiting', { threads: 300 }),
    ]
    assert.deepEqual(textsOf({ processes: [bounded, WORKER], queued }), [
      'MAX_WAITING_SECONDS bounds the interactive lane to 500 threads, and it has 400',
    ])
  })

  test('says who paused a lane and why, and which jobs are too old', () => {
    const paused = { bulk: { by: 'ada', since: '2024-05-01T09:25:00.000Z', why: 'an upgrade' } }
    assert.deepEqual(textsOf({ paused }), [
      'The bulk lane has been paused for 5 min by ada (an upgrade)',
    ])
    const ending = { interactive: { since: AT, by: 'ada', until: '2024-05-01T10:00:00.000Z' } }
    const text = 'The interactive lane has been paused for 0 s by ada; it ends in 30 min'
    assert.deepEqual(textsOf({ paused: ending }), [text])
    const queued = [
      queuedOf('interactive', 'active', { jobs: 1, oldestMs: 16_000 }),
      queuedOf('bulk', 'waiting', { oldestMs: 16_000 }),
    ]
    assert.deepEqual(textsOf({ queued }), ['The oldest interactive job has waited for 16 s'])
  })

  test('names the versions that run beside each other', () => {
    const next = processOf('worker', 7, { version: '1.1.0' })
    assert.deepEqual(textsOf({ processes: [API, WORKER, next] }), [
      'Processes of several versions run: 1.0.0, 1.1.0',
    ])
    const [one, other] = ['aaaa', 'bbbb'].map((revision) => ({ ...WORKER, revision }))
    assert(one && other)
    assert.deepEqual(
      textsOf({ processes: [API, { ...WORKER, revision: '' }, one, one] }),
      [],
      'a revision that is not known is no difference',
    )
    assert.deepEqual(textsOf({ processes: [API, one, other] }), [
      'Processes of several versions run: 1.0.0, 1.0.0 (aaaa), 1.0.0 (bbbb)',
    ])
  })

  test('failures are a problem while threads fail, and then a note', () => {
    const queued = [queuedOf('bulk', 'failed', { jobs: 2, threads: 41 })]
    const [now] = judge({ ...WELL, queued, lastFailureMs: 3_000 })
    assert.deepEqual([now?.level, now?.page], ['problem', '/failures'])
    const [later] = judge({ ...WELL, queued, lastFailureMs: 60_000 })
    assert.deepEqual(
      [later?.level, later?.text],
      ['note', '41 threads could not be stored, and wait for an operator'],
    )
  })

  test('names why jobs are not completed, and counts failed jobs whose threads are stored', () => {
    const lastMinute = { uncompleted: 3 }
    const refused = processOf('worker', 3, { uncompleted: 'WRONGTYPE', lastMinute })
    const queued = [queuedOf('bulk', 'failed', { jobs: 2, threads: 0 })]
    assert.deepEqual(textsOf({ processes: [API, WORKER, refused], queued }), [
      'Jobs could not be completed, 3 times in the last minute: WRONGTYPE',
      'Failed jobs without a thread to store, each with its reason: 2',
    ])
  })

  test('the worst comes first', () => {
    const codes = judge({ ...WELL, storeAwayMs: 1_000, processes: [], paused: { bulk: {} } }).map(
      ({ code }) => code,
    )
    assert.deepEqual(codes, ['store_away', 'process_missing', 'process_missing', 'lane_paused'])
  })
})

test('the verdict has the thresholds of the alerts', () => {
  const alerts = readFileSync(
    new URL('../../../../docs/monitoring/alerts.yml', import.meta.url),
    'utf8',
  )
  for (const [lane, seconds] of Object.entries(THRESHOLDS.oldestSeconds))
    assert.match(
      alerts,
      new RegExp(`sluice_oldest_job_seconds\\{lane="${lane}", .*\\}\\) > ${seconds}\\n`),
    )
  const shares = {
    SluiceRefusesRequests: THRESHOLDS.refusedShare,
    SluiceCallersTimeOut: THRESHOLDS.timedOutShare,
  }
  for (const [alert, share] of Object.entries(shares))
    assert.match(alerts, new RegExp(`alert: ${alert}\\n[^>]*>-[^>]* > ${share}\\n`))
  assert.match(alerts, new RegExp(`sluice_store_probe_seconds\\) > ${THRESHOLDS.storeSeconds}\\n`))
})

test('a duration is in the largest unit of which it has at least two', () => {
  const durations = { 0: '0 s', 119000: '119 s', 120000: '2 min', 7300000: '2 h', 172800000: '2 d' }
  for (const [ms, text] of Object.entries(durations)) assert.equal(duration(Number(ms)), text)
})
