import assert from 'node:assert/strict'
import type {
  FailedJobFilter,
  FailedJobPage,
  Hit,
  Operation,
  OperationRequest,
} from '@sluice/contract'
import { createPrinter, messageForPeople, UserError } from '@sluice/terminal'
import type { Command } from 'commander'
import { test } from 'vitest'
import { type AdminClient, NotFailedError } from './admin-client.ts'
import { briefReason } from './hits-commands.ts'
import { jobsCommand } from './jobs-command.ts'

type Job = FailedJobPage['jobs'][number]

const JOB: Job = {
  id: '01900000-0000-7000-8000-000000000001',
  tenant: 'acme',
  name: 'slack/thread-1',
  threads: 1,
  lane: 'bulk',
  enqueuedAt: '2024-05-01T00:00:00.000Z',
  failedAt: '2024-05-01T00:01:00.000Z',
  attempts: 5,
  reason: 'refused',
  reasonGroup: 'refused',
}

const HISTORY = {
  tries: [
    { at: JOB.enqueuedAt, worker: '', reason: '', retriedBy: 'ada' },
    { at: JOB.failedAt, worker: 'here:1', reason: 'refused\u202e' },
  ],
  failedThreads: [{ place: 3, service: 'slack', externalId: 'C01', reason: 'too large' }],
  failedThreadCount: 7,
}

const GROUP = {
  id: '0a1b2c3d',
  hours: [0, 3],
  reasonGroup: 'Document … failed',
  ...{
    jobs: 1,
    threads: 1,
    jobId: JOB.id,
    reason: 'Document a failed',
    oldestAt: JOB.failedAt,
    newestAt: JOB.failedAt,
  },
}

/**
 * Runs `sluice jobs …` with an API that has this number of failed jobs; returns what was printed,
 * asked and sent.
 */
async function terminal(
  args: string[],
  given: { jobs?: Job[]; answer?: boolean; hits?: Hit[] } = {},
) {
  const { jobs = [JOB], answer = false, hits = [] } = given
  const printed: string[] = []
  const asked: string[] = []
  const sent: (FailedJobFilter | OperationRequest)[] = []
  const operation: Operation = {
    ...{ id: 'o', kind: 'discard', state: 'completed', total: 3, examined: 3, done: 3 },
    ...{ by: '8f14e45f', createdAt: JOB.failedAt, changedAt: JOB.failedAt },
  }
  const client: AdminClient = {
    async list(filter, { limit, after = '0' }) {
      sent.push(filter)
      const next = Number(after) + limit
      const page = jobs.slice(Number(after), next)
      return next < jobs.length ? { jobs: page, next: String(next) } : { jobs: page }
    },
    async show(id) {
      if (jobs.length === 0) throw new NotFailedError('Posting the thread again is safe.')
      return {
        ...JOB,
        id,
        ...HISTORY,
        stack: ['Error: refused\n    at store.ts:1'],
        payload: { tenant: 'acme' },
      }
    },
    groups: async () => ({
      groups: [{ ...GROUP, jobs: 1_200, threads: 2_400 }, GROUP],
      isComplete: false,
    }),
    async open(kind, request) {
      sent.push(request)
      return { ...operation, kind, state: 'waiting', done: 0, examined: 0 }
    },
    operateLane: () => assert.fail('jobs are no lane'),
    operation: async () => operation,
    operations: async () => ({
      operations: [
        { ...operation, filter: { tenant: 'a\u202e' } },
        { ...operation, kind: 'retry', stored: 2, failedAgain: 1 },
      ],
    }),
    find: async () => ({ hits, more: false, notes: [] }),
    recent: () => assert.fail('jobs are not followed'),
    status: () => assert.fail('the status is not asked for'),
  }
  const command = jobsCommand({
    openClient: async () => client,
    print: createPrinter((text) => void printed.push(text.slice(0, -1))),
    confirm: async (question) => asked.push(question) > 0 && answer,
  })
  for (const each of [command, ...command.commands]) quiet(each)
  const error = await command.parseAsync(args, { from: 'user' }).then(
    () => undefined,
    ({ message }) => String(message),
  )
  return { printed, asked, sent, error }
}

function quiet(command: Command): void {
  command.exitOverride().configureOutput({ writeErr: () => {} })
}

test('a list is a table whose texts cannot steer the terminal', async () => {
  const hostile = { ...JOB, name: `slack/${'x'.repeat(300)}`, reason: 'no\u001b[2J\u202e\nsuch' }
  const { printed } = await terminal(['list'], { jobs: [JOB, hostile] })
  assert.equal(printed.length, 3)
  assert.match(
    printed[1] ?? '',
    /^01900000-0000-7000-8000-000000000001 {2}2024-05-01T00:01Z {2}acme {4}slack\/thread-1 /,
  )
  assert.match(printed[2] ?? '', /x{53}… {2}5 {9}no\ufffd\[2J\ufffd\ufffdsuch$/)
})

test('groups are a table with whole reason groups, and say what is missing', async () => {
  const { printed } = await terminal(['groups'])
  assert.match(printed[0] ?? '', /^GROUP +JOBS +THREADS +LAST HOUR +FAILED FROM +TO +REASON GROUP$/)
  assert.match(
    printed[1] ?? '',
    /^0a1b2c3d {2}1,200 {2}2,400 {4}3 +2024-05-01T00:01Z .* Document … failed$/,
  )
  assert.equal(printed.at(-1), 'More failed jobs were not examined: add --since.')
})

test('a list takes as many pages as it needs, and no job more than its limit', async () => {
  const jobs = Array.from({ length: 250 }, () => JOB)
  const { printed, sent } = await terminal(
    ['list', '--limit', '120', '--json', '--tenant', 'acme'],
    { jobs },
  )
  assert.equal(JSON.parse(printed.join('\n')).length, 120)
  assert.deepEqual(sent, [{ tenant: 'acme' }, { tenant: 'acme' }])
})

test('a job is shown with its failed threads and its last stack, and with its payload on demand', async () => {
  assert.equal((await terminal(['show', JOB.id])).printed.at(-1), '      at store.ts:1')
  const { printed } = await terminal(['show', JOB.id, '--payload'])
  assert.deepEqual(
    printed.slice(-6),
    [
      'try 1:',
      '  Error: refused',
      '      at store.ts:1',
      'payload:',
      '{',
      '  "tenant": "acme"',
      '}',
    ].slice(-6),
  )
  assert.ok(printed.includes('reason      refused'))
  assert.match(
    printed.join('\n'),
    /\nattempts:\n.+Z +retried by ada\n {2}2024-05-01T00:01:00.000Z +here:1 +refused\ufffd\n {2}and 4 more\n/,
  )
  assert.match(
    printed.join('\n'),
    /\nfailed threads:\n {2}threads\[3\] +slack\/C01 +too large\n {2}and 6 more\n/,
  )
})

test('a job that has not failed is shown as it is, and its operator is told to post nothing', async () => {
  const hit: Hit = { kind: 'job', id: JOB.id, tenant: 'acme', state: 'completed', name: JOB.name }
  const { printed, error } = await terminal(['show', JOB.id], { jobs: [], hits: [hit] })
  assert.equal(error, undefined)
  assert.equal(printed[0], 'This job has not failed.')
  assert.match(printed[1] ?? '', /^completed {2}job .* slack\/thread-1$/)
  assert.match((await terminal(['show', JOB.id], { jobs: [] })).error ?? '', /^No job has this id/)
})

test('a reason is cut after what distinguishes it', () => {
  const info =
    '{"failingDocumentId":"G","details":{"operatorName":"$ne","specifiedAs":{"speaker":{"$ne":"refused"}}}}'
  const refused = `Document failed validation (code 121 DocumentValidationFailure, collection quotes, _id "G\\"", errInfo ${info})`
  assert.equal(
    briefReason(`threads[13] "custom/one \\"2": ${refused}`),
    'Document failed validation: `quotes.speaker` must not be "refused"',
  )
  assert.equal(briefReason('x'.repeat(300)).length, 160)
})

test('a filter of the command is the filter of the request', async () => {
  const options = [
    '--service',
    'slack',
    '--external-id',
    'a',
    '--reason',
    'no',
    '--group',
    '0a1b2c3d',
    '--since',
    '2024-05-01',
  ]
  const { sent } = await terminal(['retry', ...options])
  const since = '2024-05-01T00:00:00.000Z'
  assert.deepEqual(sent, [
    { filter: { service: 'slack', externalId: 'a', reason: 'no', group: '0a1b2c3d', since } },
  ])
})

test('one job is discarded without a question, many only after an answer or with --yes', async () => {
  const jobs = Array.from({ length: 100 }, () => ({ ...JOB, threads: 50, failedThreadCount: 3 }))
  assert.deepEqual((await terminal(['discard', 'a'])).sent, [{ ids: ['a'] }])
  const refused = await terminal(['discard', '--all'], { jobs })
  assert.deepEqual(refused.asked, [
    'Discard 100 or more jobs? 300 or more threads that failed are lost for good.',
  ])
  assert.match(refused.error ?? '', /Nothing was discarded/)
  assert.deepEqual((await terminal(['discard', 'a', 'b'], { answer: true })).printed, [
    'Discarded 3 jobs.',
  ])
  const forced = await terminal(['discard', '--all', '--yes'], { jobs })
  assert.deepEqual([forced.asked, forced.sent], [[], [{ filter: {} }]])
})

test('a retry needs no question, and --no-wait names the operation', async () => {
  const { asked, printed } = await terminal(['retry', '--all', '--no-wait'])
  assert.deepEqual([asked, printed], [[], ['Operation o works in the background.']])
})

for (const args of [['retry'], ['discard', 'a', '--all'], ['discard', 'a', '--tenant', 'acme']]) {
  test(`\`jobs ${args.join(' ')}\` says which jobs it needs`, async () => {
    const { error, sent } = await terminal(args)
    assert.match(error ?? '', /Give ids of jobs, or a filter, or --all/)
    assert.deepEqual(sent, [])
  })
}

test('operations are a table with who opened them, which jobs they name or select, and what became of retried jobs', async () => {
  const { printed } = await terminal(['operations'])
  assert.match(
    printed[1] ?? '',
    /^2024-05-01T00:01Z {2}8f14e45f {2}discard {2}\{"tenant":"a\ufffd"\} {2}completed {2}3 {5}- {7}-$/,
  )
  assert.match(printed[0] ?? '', / DONE {2}STORED {2}FAILED AGAIN$/)
  assert.match(printed[2] ?? '', / {2}3 named +completed {2}3 {5}2 {7}1$/)
})

test('an API that refuses ends the command with its message', async () => {
  const refused = new UserError('No key is known')
  const openClient = () => Promise.reject(refused)
  const command = jobsCommand({ openClient, print: assert.fail, confirm: assert.fail })
  await assert.rejects(command.parseAsync(['list'], { from: 'user' }), refused)
  assert.equal(messageForPeople(refused), 'No key is known')
})
