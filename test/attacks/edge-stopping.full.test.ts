import assert from 'node:assert/strict'
import { once } from 'node:events'
import { Agent, type IncomingMessage, request } from 'node:http'
import { setTimeout as pause } from 'node:timers/promises'
import { test } from 'vitest'
import { startSluice } from '../support/start-sluice.ts'

const CALLERS = 200

test('callers with idle connections that send while the API is told to stop get their answers', async (t) => {
  const { url, api } = await startSluice(t, { workers: 0 })
  const agents = Array.from(
    { length: CALLERS },
    () => new Agent({ keepAlive: true, maxSockets: 1 }),
  )
  t.onTestFinished(() => {
    for (const agent of agents) agent.destroy()
  })
  const answers = await Promise.all(agents.map((agent) => get(url, agent)))
  assert.ok(
    answers.every(({ status, connection }) => status === 200 && connection === 'keep-alive'),
  )

  api.signal('SIGTERM')
  await api.line(({ msg }) => msg === 'process.stopping')
  const late = agents.map(async (agent, at) => {
    await pause((at * 150) / CALLERS)
    return get(url, agent)
  })
  const last = await Promise.all(late)
  assert.deepEqual([...new Set(last.map(({ status }) => status))], [200])
  assert.deepEqual([...new Set(last.map(({ connection }) => connection))], ['close'])
  assert.ok(last.every(({ reused }) => reused))
  assert.deepEqual(await api.ended, { code: 0, signal: null })
})

async function get(url: string, agent: Agent) {
  const asked = request(`${url}/limits`, { agent }).end()
  const [response]: IncomingMessage[] = await once(asked, 'response')
  if (response === undefined) throw new Error('no response')
  await response.resume().toArray()
  const { statusCode: status, headers } = response
  return { status, connection: headers.connection, reused: asked.reusedSocket }
}
