// No caller takes another tenant's rate: the worst request of each route, sent by four callers
// without pause.
import assert from 'node:assert/strict'
import { Agent, request } from 'node:http'
import { setTimeout as pause } from 'node:timers/promises'
import { createKey } from '@sluice/credentials/keys'
import { beforeSuite } from '@sluice/test-support'
import { describe, test } from 'vitest'
import { aThread, postThread } from '../support/post-thread.ts'
import { startSluice, type TestSluice } from '../support/start-sluice.ts'
import { prepareWorst, WINDOWS, type WorstRequest } from './worst-requests.ts'

const CALLERS = 4
/**
 * Further rounds are for a busy machine: a request that shuts out others does so in all of them.
 */
const MOST_ROUNDS = 6
const WINDOW_MS = 1_500
const POSTERS = 2
const REST_MS = 20
const MOST_REFUSED = 0.05
const LEAST_RATE = 0.5

/**
 * Reads an answer to its end, and keeps nothing of it. Returns the status, or why there is none.
 */
function read(
  url: string,
  agent: Agent,
  { method, path, key, body, type }: WorstRequest,
): Promise<string> {
  const { promise, resolve } = Promise.withResolvers<string>()
  const headers = { ...(key && { 'x-api-key': key }), ...(type && { 'content-type': type }) }
  const sending = request(`${url}${path}`, { method, headers, agent }, (response) => {
    response
      .on('close', () => resolve(response.complete ? String(response.statusCode) : 'broken'))
      .resume()
  })
  sending.on('error', ({ message }) => resolve(message)).end(body)
  return promise
}

describe('callers without pause', () => {
  let sluice: TestSluice
  let prepared: Awaited<ReturnType<typeof prepareWorst>>
  let key: string
  let alone: unknown[]
  beforeSuite(async (t) => {
    sluice = await startSluice(t, { settings: { MAX_LOOP_DELAY_MS: '1000', LIST_SOURCES: 'on' } })
    key = (await createKey(sluice.db, { tenant: 'initech', name: 'initech' })).key
    prepared = await prepareWorst(sluice)
    alone = await postForAWhile()
  })

  /** Posts as another tenant for the time of a window. Returns the statuses of the answers. */
  async function postForAWhile(): Promise<unknown[]> {
    const answers: unknown[] = []
    const agent = new Agent({ keepAlive: true })
    const end = performance.now() + WINDOW_MS
    const posting = Array.from({ length: POSTERS }, async () => {
      while (performance.now() < end) {
        const { status, body } = await postThread({ url: sluice.url, key, agent }, aThread())
        answers.push(status === 200 ? 200 : body.code)
        await pause(REST_MS)
      }
    })
    await Promise.all(posting)
    agent.destroy()
    return answers
  }

  /**
   * Sends requests in turn, by several callers without pause, until the returned function cuts them
   * off.
   */
  function sendWithoutPause(requests: readonly WorstRequest[]) {
    const answers: string[] = []
    const agent = new Agent({ keepAlive: true })
    let isOver = false
    let turn = 0
    const sending = Array.from({ length: CALLERS }, async () => {
      while (!isOver) {
        const next = requests[turn++ % requests.length]
        if (next)
          answers.push(`${next.path.replace(/[?].*/, '')} ${await read(sluice.url, agent, next)}`)
      }
    })
    return async () => {
      isOver = true
      agent.destroy()
      await Promise.all(sending)
      return answers
    }
  }

  for (const [it, window] of Object.entries(WINDOWS)) {
    test(`leave another tenant its part of the rate: ${it}`, async (t) => {
      const answers = {
        alone: [...alone],
        besideCallers: [] as unknown[],
        ofCallers: [] as unknown[],
      }
      const requests = Object.values(window).map((requestOf) => requestOf(prepared))
      const stored = (of: unknown[]) => of.filter((status) => status === 200).length
      const isLeft = ({ besideCallers: { length }, besideCallers }: typeof answers) =>
        stored(besideCallers) >= LEAST_RATE * stored(answers.alone) &&
        length - stored(besideCallers) <= MOST_REFUSED * length
      for (let round = 1; round <= MOST_ROUNDS && (round === 1 || !isLeft(answers)); round++) {
        if (round > 1) answers.alone.push(...(await postForAWhile()))
        const end = sendWithoutPause(requests)
        answers.besideCallers.push(...(await postForAWhile()))
        answers.ofCallers.push(...(await end()))
      }
      const counts = Object.entries(answers).map(([name, of]) => [
        name,
        Object.fromEntries(countBy(of)),
      ])
      const seen = JSON.stringify(Object.fromEntries(counts))
      await t.annotate(seen)
      assert.ok(isLeft(answers), seen)
    })
  }
})

const countBy = (answers: readonly unknown[]) =>
  [...Map.groupBy(answers, String)].map(([answer, { length }]) => [answer, length] as const)
