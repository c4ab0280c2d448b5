import assert from 'node:assert/strict'
import { fileURLToPath } from 'node:url'
import { createClient, type ItemResult, SluiceProblem, type ThreadRequest } from '@sluice/client'
import { freePort } from '@sluice/local'
import { beforeSuite } from '@sluice/test-support'
import { describe, test } from 'vitest'
import { isFull } from '../support/scale.ts'
import { type SharedSluice, shareSluice } from '../support/shared-sluice.ts'
import { startSluice } from '../support/start-sluice.ts'
import { installPacked, readmeExample } from './support/packed-package.ts'

function aThread(externalId: string, fields: Partial<ThreadRequest> = {}): ThreadRequest {
  const quotes = [
    { externalId: 'm1', speaker: 'Ada', text: 'A split one.' },
    { text: 'Which layout?' },
  ]
  return { service: 'slack', externalId, title: 'Which keyboard?', quotes, ...fields }
}

const WRONG = `
  import { createClient } from '@sluice/client'
  createClient({ url: '', apiKey: '' }).post({ service: 'slack', externalId: '', titel: '', quotes: [] })`

/** What the packed client writes out of the contract must be what the contract has. */
const SAME = `
  import type * as client from '@sluice/client'
  import type * as contract from '${fileURLToPath(import.meta.resolve('@sluice/contract'))}'
  type Same<A, B> = [A, B] extends [B, A] ? true : never
  ${[
    ...['ThreadRequest', 'ThreadAnswer', 'AcceptedAnswer', 'DeletedItem', 'DeletionAnswer'],
    ...['JobAnswer', 'SourcePage', 'SourceList', 'Problem', 'LimitName'],
  ]
    .map((name) => `true satisfies Same<client.${name}, contract.${name}>`)
    .join('\n')}`

const NODE_TYPES = fileURLToPath(new URL('../../node_modules/@types', import.meta.url))

const RUN = `
  import { importThreads } from './example.js'
  const aThread = (externalId) => ({ service: 'slack', externalId, title: 'Which keyboard?', quotes: [{ text: 'A split one.' }] })
  console.log(await importThreads(process.argv[2], process.argv[3], [aThread('p1'), { service: 'slack' }, aThread('p2')]))`

describe('the client', () => {
  let sluice: SharedSluice
  beforeSuite(async (t) => {
    sluice = await shareSluice(t)
  })

  test('posts a thread, and again without an effect', async () => {
    const client = createClient({ url: sluice.url, apiKey: sluice.key })
    const first = await client.post(aThread('c1'))
    const again = await client.post(aThread('c1'))
    assert.ok(first.kind === 'stored' && again.kind === 'stored')
    assert.deepEqual(
      [first.answer.source.outcome, again.answer.source.outcome],
      ['created', 'unchanged'],
    )
    assert.equal(again.answer.source.id, first.answer.source.id)
  })

  test('posts a thread under an idempotency key, and again without another job', async () => {
    const client = createClient({ url: sluice.url, apiKey: sluice.key })
    const options = { idempotencyKey: 'import of "c9"', wait: 0 }
    const first = await client.post(aThread('c9'), options)
    const again = await client.post(aThread('c9'), options)
    assert.ok(first.kind === 'accepted' && again.kind === 'accepted')
    assert.equal(again.jobId, first.jobId)
    await assert.rejects(
      client.post(aThread('c9', { title: 'Another' }), options),
      (error) => error instanceof SluiceProblem && error.code === 'idempotency_key_reused',
    )
  })

  test('follows the job of a thread that nobody waited for', async () => {
    const client = createClient({ url: sluice.url, apiKey: sluice.key })
    const posted = await client.post(aThread('c2'), { wait: 0 })
    assert.ok(posted.kind === 'accepted')
    const job = await client.waitForJob(posted.jobId, { signal: AbortSignal.timeout(20_000) })
    assert.equal(job.state, 'completed')
    assert.equal(job.result?.source.externalId, 'c2')
  })

  test('reports the faults of a thread, alone and among others', async () => {
    const client = createClient({ url: sluice.url, apiKey: sluice.key })
    const error = await client.post(aThread('c3', { title: ' ' })).catch((thrown) => thrown)
    assert.ok(error instanceof SluiceProblem)
    assert.equal(error.code, 'request_invalid')
    assert.equal(error.errors[0]?.pointer, '/title')
    const results = await client.postBatch([
      aThread('c4'),
      aThread('c5', { title: ' ' }),
      aThread('c6'),
    ])
    assert.deepEqual(
      results.map(({ index, externalId, status }) => [index, externalId, status]),
      [
        [0, 'c4', 200],
        [1, 'c5', 400],
        [2, 'c6', 200],
      ],
    )
    assert.equal(results[1]?.problem?.errors?.[0]?.pointer, '/title')
  })

  test('reads the limits, and says that a key is not valid', async () => {
    const limits = await createClient({ url: sluice.url, apiKey: sluice.key }).limits()
    assert.equal(limits.tenant, sluice.tenant)
    assert.ok(
      limits.bodyBytes > 0 && limits.importBytes >= limits.bodyBytes && limits.waitSeconds > 0,
    )
    const stranger = createClient({ url: sluice.url, apiKey: 'slc_nobody' })
    await assert.rejects(stranger.post(aThread('c7')), ({ code }) => code === 'api_key_invalid')
  })

  test('reads a stored source with its quotes, by its id and by its name', async () => {
    const client = createClient({ url: sluice.url, apiKey: sluice.key })
    const posted = await client.post(aThread('c8'))
    assert.ok(posted.kind === 'stored')
    const page = await client.getSource({ service: 'slack', externalId: 'c8' }, { limit: 1 })
    assert.equal(page?.source.id, posted.answer.source.id)
    assert.equal(page?.quotes.length, 1)
    const rest = await client.getSource(posted.answer.source.id, { after: page?.next })
    assert.equal(rest?.quotes.length, 1)
    assert.equal(await client.getSource({ service: 'slack', externalId: 'none' }), undefined)
  })

  // It runs pnpm, npm and the compiler.
  test.runIf(isFull)(
    "packed and installed in an empty project, it type-checks and runs the README's example",
    async (t) => {
      const project = await installPacked(t, 'client')
      assert.deepEqual(project.installed, ['@sluice/client'])
      await project.write('example.ts', await readmeExample())
      await project.write('same.ts', SAME)
      await project.write('wrong.ts', WRONG)
      await project.write('wrong.cts', WRONG)
      await project.write(
        'require.cjs',
        "console.log(typeof require('@sluice/client').createClient)",
      )
      await project.write('run.js', RUN)
      const node16 = ['--module', 'node16', '--moduleResolution', 'node16']
      const bundler = ['--module', 'esnext', '--moduleResolution', 'bundler', '--noEmit']
      const nodeOnly = ['--lib', 'es2023', '--types', 'node', '--typeRoots', NODE_TYPES, '--noEmit']
      const asHere = ['--module', 'nodenext', '--allowImportingTsExtensions', '--lib', 'es2024']
      const [built, bundled, withoutDom, same, wrong, wrongInCommonJs] = await Promise.all([
        project.compile('example.ts', ...node16),
        project.compile('example.ts', ...bundler),
        project.compile('example.ts', ...node16, ...nodeOnly),
        project.compile('same.ts', ...nodeOnly, ...asHere, '--skipLibCheck', 'true'),
        project.compile('wrong.ts', ...node16, '--noEmit'),
        project.compile('wrong.cts', ...node16, '--noEmit'),
      ])
      assert.deepEqual([built, bundled, withoutDom, same], ['', '', '', ''])
      assert.match(wrongInCommonJs, /^wrong\.cts.*'titel' does not exist[^\n]*\n$/)
      assert.equal((await project.run('require.cjs')).stdout, 'function\n')
      // Types that became `any` on their way into the package would pass everything.
      assert.match(wrong, /'titel' does not exist/)
      const { stdout, stderr } = await project.run('run.js', sluice.url, sluice.key)
      assert.equal(stdout.trim(), '2')
      assert.match(stderr, /^1 The request has 3 validation errors.*pointer: '\/externalId'/s)
    },
  )
})

test('700 threads are stored once each, with results in order, while the API is killed and started again', async (t) => {
  // A port that no connection of another process gets while the API is unavailable.
  const port = String(await freePort())
  const sluice = await startSluice(t, { settings: { PORT: port } })
  const client = createClient({ url: sluice.url, apiKey: sluice.key })
  const restart = async () => {
    sluice.api.signal('SIGKILL')
    await sluice.api.ended
    await sluice.startApi()
  }
  const threads = Array.from({ length: 700 }, (_, at) => aThread(`r-${at}`))
  const results: ItemResult[] = []
  let retries = 0
  let restarting: Promise<void> | undefined
  const options = { chunkThreads: 50, concurrency: 3, onRetry: () => (retries += 1) }
  for await (const result of client.postMany(threads, options)) {
    results.push(result)
    if (results.length === 200) restarting = restart()
  }
  await restarting
  assert.deepEqual(
    results.map(({ index, externalId, status }) => [index, externalId, status]),
    threads.map(({ externalId }, at) => [at, externalId, 200]),
  )
  assert.ok(retries > 0)
  assert.equal(await sluice.db.collection('sources').countDocuments(), 700)
  assert.equal(await sluice.db.collection('quotes').countDocuments(), 1_400)
  const again = await client.postBatch(threads)
  assert.deepEqual([...new Set(again.map(({ outcome }) => outcome))], ['unchanged'])
})
