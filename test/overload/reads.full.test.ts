// No caller takes another tenant's rate by reads: the largest answer of a route, read by four callers without pause.
import assert from 'node:assert/strict'
import { Agent, request } from 'node:http'
import { setTimeout as pause } from 'node:timers/promises'
import { createKey } from '@sluice/credentials/keys'
import { beforeSuite } from '@sluice/test-support'
import { describe, test } from 'vitest'
import { aThread, postThread } from '../support/post-thread.ts'
import { startSluice, type TestSluice } from '../support/start-sluice.ts'
import { until } from '../support/until.ts'

const READERS = 4
/**
 * Windows with and without readers take turns, so that other work of the machine slows both. More rounds are for a
 * machine that does much of it: readers that shut out others do so in all of them.
 */
const LEAST_ROUNDS = 2
const MOST_ROUNDS = 6
const WINDOW_MS = 1_500
const POSTERS = 2
const REST_MS = 20
const MOST_REFUSED = 0.05
const LEAST_RATE = 0.5

interface Read {
  method?: string
  path: string
  key?: string
  body?: unknown
  /** Of lines, in place of a body. */
  lines?: string
}

/** Reads an answer to its end, and keeps nothing of it. Returns the status, or why there is none. */
function read(url: string, agent: Agent, { method = 'GET', path, key, body, lines }: Read): Promise<string> {
  const { promise, resolve } = Promise.withResolvers<string>()
  const headers = {
    ...(key && { 'x-api-key': key }),
    ...(body !== undefined && { 'content-type': 'application/json' }),
    ...(lines !== undefined && { 'content-type': 'application/x-ndjson' }),
  }
  const sending = request(`${url}${path}`, { method, headers, agent }, (response) => {
    response.on('close', () => resolve(response.complete ? String(response.statusCode) : 'broken')).resume()
  })
  sending.on('error', ({ message }) => resolve(message)).end(body === undefined ? lines : JSON.stringify(body))
  return promise
}

const LARGE = {
  ...aThread(),
  quotes: Array.from({ length: 10_000 }, (_, at) => ({ externalId: `q${at}`, text: 'é'.repeat(450) })),
}

const PAGES = { ...LARGE, quotes: Array.from({ length: 15 }, () => ({ text: '🎹'.repeat(50_000) })) }
const LONG = '🎹'.repeat(20_000)
const NAMES = Array.from({ length: 150 }, (_, at) => `long-${at}`)

describe('readers without pause', () => {
  let sluice: TestSluice
  let other: string
  const paths = { job: '', source: '' }
  beforeSuite(async (t) => {
    sluice = await startSluice(t, { settings: { MAX_LOOP_DELAY_MS: '1000', LIST_SOURCES: 'on' } })
    const { url, key, db } = sluice
    other = (await createKey(db, { tenant: 'globex', name: 'other' })).key
    const headers = { 'x-api-key': key, prefer: 'respond-async', 'content-type': 'application/json' }
    const posted = await fetch(`${url}/sources`, { method: 'POST', headers, body: JSON.stringify(LARGE) })
    assert.equal(posted.status, 202, await posted.text())
    paths.job = String(posted.headers.get('location'))
    const threads = [
      { ...PAGES, externalId: 'pages' },
      ...NAMES.map((externalId) => ({ ...LARGE, externalId, description: LONG, quotes: [] })),
    ]
    const lines = threads.map((thread) => `${JSON.stringify(thread)}\n`).join('')
    const ndjson = { 'x-api-key': key, 'content-type': 'application/x-ndjson' }
    const stored = await fetch(`${url}/sources:batch`, { method: 'POST', headers: ndjson, body: lines })
    const [first = '', ...others] = (await stored.text()).split('\n')
    assert.match(others.at(-2) ?? '', /"created":151,/)
    paths.source = `/sources/${JSON.parse(first).id}`
    await until('the job is done', async () => {
      const answer = await fetch(`${url}${paths.job}`, { headers: { 'x-api-key': key } })
      return (await answer.text()).includes('"completed"')
    })
  })

  const reads: [it: string, read: () => Read][] = [
    ['of a job of 10 MB', () => ({ path: paths.job, key: sluice.key })],
    ["of another tenant's job of 10 MB", () => ({ path: paths.job, key: other })],
    [
      'of sources with long descriptions',
      () => {
        const body = { service: 'custom', externalIds: NAMES }
        return { method: 'POST', path: '/sources:lookup', key: sluice.key, body }
      },
    ],
    ['of a list of such sources', () => ({ path: '/sources?limit=1000', key: sluice.key })],
    ['of pages of a large source', () => ({ path: `${paths.source}?limit=1000`, key: sluice.key })],
    ['of the description', () => ({ path: '/openapi.json' })],
    [
      'of the results of faulty lines of 2 bytes',
      () => ({ method: 'POST', path: '/sources:batch', key: other, lines: '1\n'.repeat(20_000) }),
    ],
  ]
  for (const [it, next] of reads) {
    test(`leave another tenant at least half of its rate: ${it}`, async (t) => {
      const { url, db } = sluice
      const { key } = await createKey(db, { tenant: 'initech', name: it })
      const agent = new Agent({ keepAlive: true })
      t.onTestFinished(() => agent.destroy())
      const answers = { alone: [] as unknown[], besideReaders: [] as unknown[], ofReaders: [] as unknown[] }
      const post = async (window: unknown[], end: number) => {
        while (performance.now() < end) {
          {
            const p = await postThread({ url, key, agent }, aThread())
            window.push(p.status === 200 ? 200 : p.body.code)
          }
          await pause(REST_MS)
        }
      }
      const postersOf = (window: unknown[]) => {
        const end = performance.now() + WINDOW_MS
        return Promise.all(Array.from({ length: POSTERS }, () => post(window, end)))
      }
      const stored = (window: unknown[]) => window.filter((status) => status === 200).length
      const isLeft = ({ alone, besideReaders: { length }, besideReaders }: typeof answers) =>
        stored(besideReaders) >= LEAST_RATE * stored(alone) && length - stored(besideReaders) <= MOST_REFUSED * length
      for (let round = 0; round < LEAST_ROUNDS || (round < MOST_ROUNDS && !isLeft(answers)); round++) {
        await postersOf(answers.alone)
        let isOver = false
        const readers = Array.from({ length: READERS }, async () => {
          while (!isOver) answers.ofReaders.push(await read(url, agent, next()))
        })
        await postersOf(answers.besideReaders)
        isOver = true
        await Promise.all(readers)
      }
      const counts = Object.entries(answers).map(([name, of]) => [name, Object.fromEntries(countBy(of))])
      const seen = JSON.stringify(Object.fromEntries(counts))
      await t.annotate(seen)
      assert.ok(isLeft(answers), seen)
    })
  }
})

const countBy = (answers: readonly unknown[]) =>
  [...Map.groupBy(answers, String)].map(([answer, { length }]) => [answer, length] as const)
