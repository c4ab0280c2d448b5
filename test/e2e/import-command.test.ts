import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { createKey, revokeKey } from '@sluice/credentials/keys'
import { runImport } from '@sluice/importer/test-support'
import { beforeSuite, makeZip, runtimeEnv } from '@sluice/test-support'
import { describe, type TestContext, test } from 'vitest'
import { openQueue } from '../support/open-queue.ts'
import { isFull, scale } from '../support/scale.ts'
import { type SharedSluice, shareSluice } from '../support/shared-sluice.ts'
import { startSluice } from '../support/start-sluice.ts'
import { until } from '../support/until.ts'
import { slackExport } from './support/slack-export.ts'
import { someThread } from './support/some-thread.ts'

/**
 * Of an import that meets the bounds of queue and key: as many batches as are in flight, or twice
 * as many.
 */
const BEYOND_BOUNDS = scale(2_000, 4_000)
/** Threads of a request of `sluice import`. */
const BATCH = 500
/** Of an import that is killed: a batch for each kill, and some that are left. */
const KILLED = 2_000

/** Hangs in a record, beside a temporary folder such as that of an iMessage database. */
const TAKES_LONG = `import { mkdirSync } from 'node:fs'
import { tmpdir } from 'node:os'
const { parse } = JSON
JSON.parse = (text, ...rest) => {
  if (!String(text).includes('takes long')) return parse(text, ...rest)
  mkdirSync(tmpdir() + '/sluice-import-' + process.pid + '-x')
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)
}`

const MAIN = fileURLToPath(import.meta.resolve('../../apps/cli/src/main.ts'))

async function someFolder(t: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-import-test-'))
  t.onTestFinished(() => rm(folder, { recursive: true, force: true }))
  return folder
}

/** `sluice import` as a user runs it, with the key of a Sluice: a process that can be killed. */
function startImport(
  t: TestContext,
  { url, key }: Pick<SharedSluice, 'url' | 'key'>,
  args: readonly string[],
  env: Record<string, string> = {},
) {
  const child = spawn(process.execPath, [MAIN, 'import', '--url', url, ...args], {
    env: { ...runtimeEnv(), SLUICE_API_KEY: key, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  t.onTestFinished(() => void child.kill('SIGKILL'))
  const output = Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')])
  const ended = output.then(([stdout, stderr, [code, signal]]) => ({
    stdout,
    stderr,
    code,
    signal,
  }))
  return { child, ended }
}

/** The process that reads and sends, which the one that was started can kill. */
async function importerOf({ pid }: ChildProcess): Promise<number> {
  const children = () => readFile(`/proc/${pid}/task/${pid}/children`, 'utf8')
  await until('it runs', async () => (await children()) !== '')
  return Number.parseInt(await children(), 10)
}

/** Runs the command to its end, in this process. */
async function importAll({ url, key }: Pick<SharedSluice, 'url' | 'key'>, ...args: string[]) {
  const deps = { folder: tmpdir(), env: { SLUICE_API_KEY: key } }
  return summed(await runImport(deps, ['--url', url, '--json', ...args]))
}

/** The summary is the last line that an import prints. */
function summed({ stdout, stderr, code }: { stdout: string; stderr: string; code: number | null }) {
  const last = stdout.trimEnd().split('\n').at(-1) ?? ''
  return { code, stderr, summary: last.startsWith('{') ? JSON.parse(last) : undefined }
}

async function writeThreads(
  folder: string,
  name: string,
  threads: readonly object[],
): Promise<string> {
  const file = join(folder, name)
  await writeFile(file, threads.map((thread) => `${JSON.stringify(thread)}\n`).join(''))
  return file
}

/** Mails of May 2010, each with a day, headers and a text. */
function mbox(mails: readonly (readonly [day: number, headers: Record<string, string>])[]): string {
  return mails
    .map(([day, headers]) => {
      const date = `${String(day).padStart(2, '0')} May 2010 10:00:00 +0000`
      const lines = Object.entries({ Date: date, From: 'ada@a.example', ...headers })
      const head = lines.map(([name, value]) => `${name}: ${value}\n`).join('')
      return `From ada Sat May  1 10:00:00 2010\n${head}\nText of ${headers['Message-ID']}\n\n`
    })
    .join('')
}

/**
 * An archive of two conversations. Of the first, the mails in the middle name their parents only,
 * and the last one's References are truncated. In its second half, it seems to be two.
 */
const FIRST_HALF = [
  [1, { 'Message-ID': '<1@a>', Subject: 'Cold oven' }],
  [2, { 'Message-ID': '<2@a>', Subject: 'Re: Cold oven', 'In-Reply-To': '<1@a>' }],
  [2, { 'Message-ID': '<x1@a>', Subject: 'Rye', References: '<x0@a>' }],
  [3, { 'Message-ID': '<3@a>', Subject: 'Re: Cold oven', 'In-Reply-To': '<2@a>' }],
  [3, { 'Message-ID': '<6@a>', Subject: 'Re: Cold oven', 'In-Reply-To': '<4@a>' }],
] as const
const SECOND_HALF = [
  [4, { 'Message-ID': '<4@a>', Subject: 'Re: Cold oven', 'In-Reply-To': '<3@a>' }],
  [5, { 'Message-ID': '<5@a>', Subject: 'Re: Cold oven', References: '<2@a> <4@a>' }],
  [6, { 'Message-ID': '<7@a>', Subject: 'Re: Cold oven', References: '<6@a>' }],
  [7, { 'Message-ID': '<x2@a>', Subject: 'Re: Rye', References: '<x0@a> <x1@a>' }],
  [7, { 'Message-ID': '<x2@a>', Subject: 'Re: Rye', References: '<x0@a> <x1@a>' }],
] as const
/** Of the last mail. */
const copies = { 'copies of messages': 1 }

describe('sluice import', () => {
  let sluice: SharedSluice
  /** The stored sources of a tenant, by default of the one whose key posts. */
  const findSources = (filter: object) =>
    sluice.db
      .collection('sources')
      .find({ tenant: sluice.tenant, ...filter })
      .toArray()

  beforeSuite(async (t) => {
    sluice = await shareSluice(t)
  })

  test('700 threads as NDJSON are stored, and the second import writes nothing', async (t) => {
    const threads = Array.from({ length: 700 }, (_, at) => someThread({ externalId: `n-${at}` }))
    const file = await writeThreads(await someFolder(t), 'threads.ndjson', threads)
    const first = summed(await startImport(t, sluice, ['--json', file]).ended)
    assert.equal(first.code, 0, first.stderr)
    assert.deepEqual(first.summary.threads, { created: 700, updated: 0, unchanged: 0, rejected: 0 })
    assert.equal((await findSources({ externalId: /^n-/ })).length, 700)
    const second = await importAll(sluice, file)
    assert.deepEqual(second.summary.threads, {
      created: 0,
      updated: 0,
      unchanged: 700,
      rejected: 0,
    })
    assert.deepEqual(second.summary.quotes.created + second.summary.quotes.updated, 0)
  })

  test('a Slack zip is stored with threads that span its files, and the second import writes nothing', async (t) => {
    const folder = await someFolder(t)
    const file = join(folder, 'export.zip')
    await writeFile(file, slackExport(60))
    const first = await importAll(sluice, file)
    assert.equal(first.code, 0, first.stderr)
    assert.deepEqual(first.summary.threads, { created: 60, updated: 0, unchanged: 0, rejected: 0 })
    const [stored] = await findSources({ externalId: 'C1/1714556003.000100' })
    assert.deepEqual(
      [stored?.title, stored?.channelName, stored?.quoteCount],
      ['Question 3', 'general', 2],
    )
    const second = await importAll(sluice, file)
    assert.deepEqual(second.summary.threads, { created: 0, updated: 0, unchanged: 60, rejected: 0 })
    assert.deepEqual(await readdir(folder), ['export.zip'])
  })

  describe('of mails', () => {
    /**
     * Imports an archive for a tenant, and returns the counts of its threads and quotes that are
     * not 0.
     */
    async function importMails(t: TestContext, tenant: string, mails: Parameters<typeof mbox>[0]) {
      const file = join(await someFolder(t), 'archive.mbox')
      await writeFile(file, mbox(mails))
      const { key } = await createKey(sluice.db, { tenant, name: file.slice(-100) })
      const { code, stderr, summary } = await importAll({ url: sluice.url, key }, file)
      assert.equal(code, 0, stderr)
      const { threads, quotes, skipped } = summary
      const some = Object.entries({
        ...threads,
        ...prefixed('quotes ', quotes),
        ...skipped,
      }).filter(([, n]) => n !== 0)
      return Object.fromEntries(some)
    }
    const prefixed = (prefix: string, counts: object) =>
      Object.fromEntries(Object.entries(counts).map(([name, count]) => [prefix + name, count]))

    /** The sources of a tenant: each with its title, its day, and the ids of its quotes. */
    async function storedOf(tenant: string) {
      const stored = await findSources({ tenant })
      const shown = stored.map(async ({ _id, externalId, title, createdAt, quoteCount }) => {
        const quotes = await sluice.db.collection('quotes').find({ sourceId: _id }).toArray()
        assert.equal(quotes.length, quoteCount)
        const day = createdAt.toISOString().slice(0, 10)
        return [
          externalId,
          `${title}, ${day}: ${quotes
            .map((quote) => quote.externalId)
            .toSorted()
            .join(' ')}`,
        ]
      })
      return Object.fromEntries(await Promise.all(shown))
    }

    test('a conversation is a source, and its first date is kept when its end is imported again', async (t) => {
      const all = {
        '1@a': 'Cold oven, 2010-05-01: 1@a 2@a 3@a 4@a 5@a 6@a 7@a',
        'x0@a': 'Rye, 2010-05-02: x1@a x2@a',
      }
      const first = await importMails(t, 'whole', [...FIRST_HALF, ...SECOND_HALF])
      assert.deepEqual(first, { created: 2, 'quotes created': 9, ...copies })
      assert.deepEqual(await storedOf('whole'), all)
      await importMails(t, 'whole', SECOND_HALF)
      assert.equal((await storedOf('whole'))['x0@a'], all['x0@a'])
    })

    test('its second half, then all of it, then all again: no mail is stored twice', async (t) => {
      const half = await importMails(t, 'halves', SECOND_HALF)
      assert.deepEqual(half, { created: 3, 'quotes created': 4, ...copies })
      assert.deepEqual(await storedOf('halves'), {
        '3@a': 'Cold oven, 2010-05-04: 4@a 5@a',
        '6@a': 'Cold oven, 2010-05-06: 7@a',
        'x0@a': 'Rye, 2010-05-07: x2@a',
      })
      const merges = { 'merges of sources that are one conversation': 1, ...copies }
      const whole = await importMails(t, 'halves', [...FIRST_HALF, ...SECOND_HALF])
      assert.deepEqual(whole, { updated: 2, 'quotes created': 5, 'quotes unchanged': 4, ...merges })
      const stored = {
        '3@a': 'Cold oven, 2010-05-01: 1@a 2@a 3@a 4@a 5@a 6@a',
        '6@a': 'Cold oven, 2010-05-06: 7@a',
        'x0@a': 'Rye, 2010-05-02: x1@a x2@a',
      }
      assert.deepEqual(await storedOf('halves'), stored)
      const again = await importMails(t, 'halves', [...FIRST_HALF, ...SECOND_HALF])
      assert.deepEqual(again, { unchanged: 2, 'quotes unchanged': 9, ...merges })
      assert.deepEqual(await storedOf('halves'), stored)
    })
  })

  test('CSV without dates of sources has those of its quotes, and a later import keeps the earliest', async (t) => {
    const folder = await someFolder(t)
    const importRows = async (...rows: string[]) => {
      const file = join(folder, 'tickets.csv')
      await writeFile(file, ['ticket,externalId,createdAt,text', ...rows].join('\n'))
      const { code, stderr } = await importAll(
        sluice,
        file,
        '--set',
        'service=custom',
        '--group-by',
        'ticket',
      )
      assert.equal(code, 0, stderr)
      return (await findSources({ service: 'custom', externalId: 'csv-7' }))[0]?.createdAt
    }
    const on = (day: string) => new Date(`2024-05-${day}`)
    assert.deepEqual(await importRows('csv-7,2,2024-05-03,b', 'csv-7,1,2024-05-02,a'), on('02'))
    assert.deepEqual(await importRows('csv-7,3,2024-05-04,c'), on('02'))
    assert.deepEqual(await importRows('csv-7,0,2024-05-01,z'), on('01'))
  })

  test.runIf(isFull)(
    'an import that is killed several times goes on where it stopped, and stores everything once',
    async (t) => {
      // So slow that each run is still at work when it is killed.
      const limits = { quotesPerSecond: 200, burstQuotes: 100 }
      const { key } = await createKey(sluice.db, { tenant: 'slow', name: 'slow', limits })
      const quotes = [{ externalId: '1', text: 'a message' }]
      const threads = Array.from({ length: KILLED }, (_, at) =>
        someThread({ externalId: `k-${at}`, quotes }),
      )
      const file = await writeThreads(await someFolder(t), 'killed.ndjson', threads)
      const settled = async () => {
        const text = await readFile(`${file}.sluice-checkpoint`, 'utf8').catch(() => '')
        return text === '' ? 0 : JSON.parse(text).progress.tally.events
      }
      const kills = Array.from({ length: 2 }, () => ['SIGKILL', null] as const)
      for (const [signal, code] of [...kills, ['SIGINT', 4] as const]) {
        const before = await settled()
        const run = startImport(t, { url: sluice.url, key }, ['--concurrency', '1', file])
        await until('the import gets on', async () => (await settled()) > before)
        run.child.kill(signal)
        const { code: ended, stdout } = await run.ended
        assert.equal(ended, code, stdout)
        assert.doesNotMatch(stdout, /done/i)
      }
      // The checkpoint is the tenant's: it outlives a key that is revoked.
      await revokeKey(sluice.db, 'slow')
      const another = await createKey(sluice.db, { tenant: 'slow', name: 'another' })
      const last = await importAll({ url: sluice.url, key: another.key }, file)
      assert.equal(last.code, 0, last.stderr)
      assert.match(last.stderr, /Going on where an earlier run of this import stopped/)
      assert.ok(last.summary.threadsBefore > 0)
      // Each thread counts once, although some were posted several times.
      const { created, updated, unchanged, rejected } = last.summary.threads
      assert.deepEqual([created + unchanged, updated, rejected], [KILLED, 0, 0])
      const ids = (await findSources({ tenant: 'slow' })).map(({ _id }) => _id)
      assert.equal(ids.length, KILLED)
      const ofSources = { sourceId: { $in: ids } }
      assert.equal(await sluice.db.collection('quotes').countDocuments(ofSources), KILLED)
      await assert.rejects(readFile(`${file}.sluice-checkpoint`), { code: 'ENOENT' })
    },
  )

  test('rejected records are written to a file, which can be fixed and imported', async (t) => {
    const good = (id: string) => someThread({ externalId: id })
    const bad = someThread({ externalId: 'r-2', createdAt: 'yesterday' })
    const file = await writeThreads(await someFolder(t), 'some.ndjson', [
      good('r-1'),
      bad,
      good('r-3'),
    ])
    const first = await importAll(sluice, file)
    assert.equal(first.code, 1)
    assert.equal(first.summary.state, 'completed_with_rejected')
    assert.deepEqual(first.summary.threads, { created: 2, updated: 0, unchanged: 0, rejected: 1 })
    const rejected = `${file}.rejected.ndjson`
    assert.equal(first.summary.rejectedFile, rejected)
    const text = await readFile(rejected, 'utf8')
    assert.match(text, /^\{"reason":"createdAt must be a date.*"path":"some.ndjson","line":2,/)
    await writeFile(rejected, text.replace('"createdAt":"yesterday"', '"createdAt":"2024-05-01"'))
    const second = await importAll(sluice, rejected)
    assert.equal(second.code, 0, second.stderr)
    assert.equal((await findSources({ externalId: 'r-2' })).length, 1)
  })

  test('a Slack message without a timestamp becomes a reply of its thread after one was added', async (t) => {
    const folder = await someFolder(t)
    const file = join(folder, 'export.zip')
    const root = {
      type: 'message',
      ts: '1714556000.000100',
      user: 'U1',
      text: 'Question',
      reply_count: 1,
    }
    const reply = { type: 'message', thread_ts: root.ts, user: 'U2', text: 'Answer' }
    const lists = {
      'channels.json': [{ id: 'C9', name: 'fixes' }],
      'users.json': [{ id: 'U2', name: 'grace' }],
    }
    const files = Object.entries({ ...lists, 'fixes/2024-05-01.json': [root, reply] })
    await writeFile(
      file,
      makeZip(Object.fromEntries(files.map(([name, list]) => [name, JSON.stringify(list)]))),
    )
    const first = await importAll(sluice, '--id-prefix', 'a/', file)
    assert.deepEqual(
      [first.code, first.summary.rejectedReasons],
      [1, { 'a message without a timestamp `ts`': 1 }],
    )
    const rejected = `${file}.rejected.ndjson`
    const line = await readFile(rejected, 'utf8')
    await writeFile(rejected, line.replace('"record":{', '"record":{"ts":"1714556001.000100",'))
    const second = await importAll(sluice, rejected)
    assert.equal(second.code, 0, second.stderr)
    const sources = await findSources({ externalId: /C9/ })
    assert.deepEqual(
      sources.map(({ externalId, title, channelName, quoteCount }) => [
        externalId,
        title,
        channelName,
        quoteCount,
      ]),
      [[`a/C9/${root.ts}`, 'Question', 'fixes', 2]],
    )
    const stored = await sluice.db
      .collection('quotes')
      .findOne({ sourceId: sources[0]?._id, text: 'Answer' })
    assert.equal(stored?.speaker, 'grace')
  })

  test('it gives up after too many rejected records, and fails with a key that is not known', async (t) => {
    const folder = await someFolder(t)
    const bad = await writeThreads(
      folder,
      'bad.ndjson',
      Array(20).fill({ ...someThread(), createdAt: 'yesterday' }),
    )
    const good = await writeThreads(folder, 'good.ndjson', [someThread()])
    const [gaveUp, failed] = await Promise.all([
      importAll(sluice, '--format', 'ndjson', '--max-errors', '5', bad),
      importAll({ ...sluice, key: `slc_${'0'.repeat(36)}` }, good),
    ])
    assert.deepEqual([gaveUp.code, gaveUp.summary.state], [2, 'gave_up'])
    const again = await importAll(sluice, '--format', 'ndjson', '--max-errors', '5', bad)
    assert.deepEqual(
      [again.code, again.summary.threads.rejected],
      [2, gaveUp.summary.threads.rejected],
    )
    assert.deepEqual([failed.code, failed.summary.state], [3, 'failed'])
    assert.match(failed.summary.problem, /Check the key/)
  })

  test.concurrent('an import beyond the bounds of queue and key is stored, and does not hammer the service', async (t) => {
    // Two groups of an import fill the tenant's share, so four batches compete for it.
    const full = await startSluice(t, { settings: { MAX_QUEUE_THREADS: '200', WAIT_SECONDS: '2' } })
    const limits = { quotesPerSecond: 800, burstQuotes: 800 }
    const { key } = await createKey(full.db, { tenant: 'full', name: 'full', limits })
    const threads = Array.from({ length: BEYOND_BOUNDS }, (_, at) =>
      someThread({ externalId: `f-${at}` }),
    )
    const file = await writeThreads(await someFolder(t), 'threads.ndjson', threads)
    const { left } = openQueue(t, full.settings)
    // If nothing drained for half a second, callers would be told to come again in a minute.
    const [worker] = full.workers
    worker?.signal('SIGSTOP')
    const imported = importAll({ url: full.url, key }, file)
    await until('the share is used up', async () => (await left()) >= 2)
    worker?.signal('SIGCONT')
    const { code, stderr, summary } = await imported
    assert.equal(code, 0, stderr)
    const { created, unchanged, ...others } = summary.threads
    assert.deepEqual([created + unchanged, others], [BEYOND_BOUNDS, { updated: 0, rejected: 0 }])
    assert.equal(
      await full.db.collection('sources').countDocuments({ tenant: 'full' }),
      BEYOND_BOUNDS,
    )
    const answers = full.api.log.filter(({ path }) => path === '/sources:batch')
    // Each of the four batches in flight asks at most once a second.
    assert.ok(
      answers.length < BEYOND_BOUNDS / BATCH + 4 * summary.seconds,
      `${answers.length} requests in ${summary.seconds} s`,
    )
  })

  test.concurrent('SIGTERM and SIGINT end an import within a record that takes long to read', async (t) => {
    const folder = await someFolder(t)
    const read = await writeThreads(folder, 'a.ndjson', [someThread()])
    const long = await writeThreads(folder, 'b.ndjson', [someThread({ title: 'takes long' })])
    const NODE_OPTIONS = `--import=data:text/javascript,${encodeURIComponent(TAKES_LONG)}`
    const endBy = async (signal: NodeJS.Signals) => {
      const temp = join(folder, signal)
      await mkdir(temp)
      const { child, ended } = startImport(t, sluice, [read, long], { TMPDIR: temp, NODE_OPTIONS })
      const importer = await importerOf(child)
      await until('it reads the record', async () =>
        (await readdir(temp)).includes(`sluice-import-${importer}-x`),
      )
      child.kill(signal)
      const { code, stderr } = await ended
      assert.equal(code, 4, stderr)
      assert.match(stderr, /interrupted within a record/)
      assert.throws(() => process.kill(importer, 0), { code: 'ESRCH' })
      assert.deepEqual(await readdir(temp), [])
    }
    await Promise.all([endBy('SIGTERM'), endBy('SIGINT')])
    const { summary } = await importAll(sluice, read, long)
    assert.deepEqual(
      [summary.state, summary.threads.created + summary.threads.unchanged],
      ['completed', 2],
    )
  })

  test.concurrent('standard input is sent as it comes, and a crash has an exit code of its own', async (t) => {
    const crash = "process.on('SIGUSR2', () => { throw new Error('on purpose') })"
    const child = spawn(
      process.execPath,
      [MAIN, 'import', '--url', sluice.url, '--format', 'ndjson', '-'],
      {
        env: {
          ...runtimeEnv(),
          SLUICE_API_KEY: sluice.key,
          NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(crash)}`,
        },
        stdio: ['pipe', 'pipe', 'ignore'],
      },
    )
    t.onTestFinished(() => void child.kill('SIGKILL'))
    child.stdin.on('error', () => {})
    child.stdin.write(`${JSON.stringify(someThread({ externalId: 'in-1' }))}\n`)
    const ended = Promise.all([text(child.stdout), once(child, 'close')])
    await until(
      'the thread is stored',
      async () => (await findSources({ externalId: 'in-1' })).length === 1,
    )
    process.kill(await importerOf(child), 'SIGUSR2')
    const [stdout, [code]] = await ended
    assert.equal(code, 5)
    assert.match(stdout, /^Crashed: .*on purpose/s)
  })
})
