import assert from 'node:assert/strict'
import { once } from 'node:events'
import { Agent, type IncomingMessage, request } from 'node:http'
import { setTimeout as pause } from 'node:timers/promises'
import { test } from 'vitest'
import { createCaller, type Reply } from '../e2e/support/caller.ts'
import { problemIn } from '../e2e/support/read-reply.ts'
import { someThread } from '../e2e/support/some-thread.ts'
import { startSluice } from '../support/start-sluice.ts'
import { until } from '../support/until.ts'

test('POSTs are refused while the event loop lags, and only then', async (t) => {
  const sluice = await startSluice(t, { settings: { MAX_LOOP_DELAY_MS: '250' } })
  const caller = createCaller(sluice)
  const post = () => caller.post(someThread())
  await until('a post is stored', async () => (await post()).status === 200)
  // The delay counts from the end of its second on, for a second, so posts are sent all the time in
  // between.
  const refused = await until<Reply | undefined>('a post is refused', async () => {
    sluice.api.signal('SIGSTOP')
    await pause(1_200)
    sluice.api.signal('SIGCONT')
    const posts = Array.from({ length: 15 }, (_, at) => pause(at * 100).then(post))
    return (await Promise.all(posts)).find(({ status }) => status === 503)
  })
  assert.ok(refused)
  assert.match(problemIn(refused, 503, 'overloaded').detail, /MAX_LOOP_DELAY_MS/)
  assert.match(refused.headers.get('retry-after') ?? '', /^\d+$/)
  assert.equal((await caller.get('/limits')).status, 200)
  await until('a post is stored again', async () => (await post()).status === 200)
})

test('no valid post is refused as invalid, though the API is stopped for seconds in the middle of bodies', async (t) => {
  const { url, key, api } = await startSluice(t, { settings: { MAX_LOOP_DELAY_MS: '250' } })
  const agent = new Agent({ keepAlive: true, maxSockets: 60 })
  t.onTestFinished(() => agent.destroy())
  async function post(at: number): Promise<number | string> {
    const body = Buffer.from(JSON.stringify(someThread({ unknown: 'x'.repeat((at % 4) * 20_000) })))
    const length = at % 2 === 0 ? { 'content-length': body.length } : {}
    const headers = { 'x-api-key': key, 'content-type': 'application/json', ...length }
    const sent = request(`${url}/sources`, { method: 'POST', agent, headers })
    const answered = once(sent, 'response')
    // A connection that is closed after a refusal ends with an error, or with the refusal.
    answered.catch(() => {})
    const middle = (at * 997) % body.length
    sent.write(body.subarray(0, middle))
    await pause(200 * (at % 5))
    sent.end(body.subarray(middle))
    try {
      const [response]: IncomingMessage[] = await answered
      const text = Buffer.concat((await response?.toArray()) ?? []).toString()
      return response?.statusCode === 400 || response?.statusCode === 408
        ? text
        : (response?.statusCode ?? '')
    } catch {
      return 'closed'
    }
  }
  const posts = Array.from({ length: 240 }, (_, at) => post(at))
  for (let times = 0; times < 3; times++) {
    await pause(300)
    api.signal('SIGSTOP')
    await pause(1_500)
    api.signal('SIGCONT')
  }
  const answers = await Promise.all(posts)
  assert.deepEqual(
    [...new Set(answers)].filter((answer) => ![200, 503, 504, 'closed'].includes(answer)),
    [],
  )
  assert.ok(answers.includes(200))
})
