import assert from 'node:assert/strict'
import { isDeepStrictEqual } from 'node:util'
import { freePort } from '@sluice/local'
import type { Readiness } from '@sluice/process'
import { requiredUrl, startProcess, type TestScope } from '@sluice/test-support'
import { describe, test } from 'vitest'
import { createStartNode, redisProgram } from '../faults/redis-topology.ts'
import { needs } from '../runner/programs.ts'
import { assertStored } from '../support/assert-stored.ts'
import { openOperator } from '../support/open-operator.ts'
import { aThread, postThread } from '../support/post-thread.ts'
import { runSluice } from '../support/run-sluice.ts'
import { prepareSluice, untilKeyIsKnown } from '../support/start-sluice.ts'
import { type Certificate, makeCertificate, openTlsProxy, type Seen } from '../support/tls-proxy.ts'
import { until } from '../support/until.ts'

const program = await redisProgram()

/** Opens Redis behind TLS, and returns its URL and what the proxies before it see of Sluice. */
type OpenRedis = (
  t: TestScope,
  certificate: Certificate,
) => Promise<{ url: string; seen: readonly Seen[] }>

const openServer: OpenRedis = async (t, certificate) => {
  const proxy = await openTlsProxy(t, certificate, portOf(requiredUrl('REDIS_URL')))
  return { url: `rediss://localhost:${proxy.port}`, seen: [proxy.seen] }
}

const openSentinel: OpenRedis = async (t, certificate) => {
  const start = await createStartNode(t, program ?? '')
  const primary = await start(LIKE_START)
  // The Sentinel itself asks the primary without TLS.
  const { port } = await openTlsProxy(t, certificate, primary.port, { isOpen: true })
  const sentinel = await start([
    '--sentinel',
    '--sentinel',
    'monitor',
    'main',
    '127.0.0.1',
    String(port),
    '1',
  ])
  const proxy = await openTlsProxy(t, certificate, sentinel.port)
  return { url: `rediss+sentinel://localhost:${proxy.port}/main`, seen: [proxy.seen] }
}

const openCluster: OpenRedis = async (t, certificate) => {
  const start = await createStartNode(t, program ?? '')
  const [port, busPort] = [await freePort(), await freePort()]
  const ports = ['--cluster-port', String(busPort), '--cluster-announce-port', String(port)]
  const node = await start([...LIKE_START, '--cluster-enabled', 'yes', ...ports])
  await node.send('CLUSTER', 'ADDSLOTSRANGE', 0, 16_383)
  await until('a cluster that is up', async () =>
    /state:ok/.test(String(await node.send('CLUSTER', 'INFO'))),
  )
  const proxy = await openTlsProxy(t, certificate, node.port, { port })
  return { url: `rediss+cluster://127.0.0.1:${port}`, seen: [proxy.seen] }
}

const LIKE_START = ['--appendonly', 'yes', '--maxmemory-policy', 'noeviction']

describe.skipIf(program === undefined)(
  'TLS, with an authority of its own',
  needs('openssl'),
  () => {
    for (const [name, openRedis] of [
      ['one server', openServer],
      ['Sentinel', openSentinel],
      ['a cluster', openCluster],
    ] as const) {
      test(`all connections to Redis (${name}) and to MongoDB use TLS, and a thread is stored`, async (t) => {
        const certificate = await makeCertificate(t)
        const { url: redisUrl, seen } = await openRedis(t, certificate)
        const prepared = await prepareSluice(t, { redisUrl })
        const mongodb = await overTls(t, certificate, prepared.settings.MONGODB_URL)
        const tls = { MONGODB_URL: mongodb.url, NODE_EXTRA_CA_CERTS: certificate.file }
        const [{ url }] = await Promise.all([prepared.startApi(tls), prepared.startWorker(tls)])
        await untilKeyIsKnown(url, prepared.key)
        const posted = await postThread({ url, key: prepared.key }, aThread())
        assert.equal(posted.status, 200)
        await assertStored(prepared.db, [posted])
        const { code, stdout } = await runSluice(
          { settings: { ...prepared.settings, ...tls } },
          'doctor',
        )
        assert.equal(code, 0, stdout)
        for (const port of [portOf(mongodb.url), portOf(redisUrl)])
          assert.match(stdout, new RegExp(`^  ok +the certificate of \\S+:${port} ends on 2`, 'm'))
        for (const { plaintext, encrypted } of [...seen, mongodb.seen])
          assert(encrypted > 0 && plaintext === 0)
        // A proxy may choose a server by its name.
        for (const { names } of seen)
          assert.deepEqual([...names], name === 'a cluster' ? [] : ['localhost'])
      })

      test(`a certificate of Redis (${name}) that nobody vouches for is refused, and log and readyz say so`, async (t) => {
        const { url: redisUrl } = await openRedis(t, await makeCertificate(t))
        const { startApi } = await prepareSluice(t, { redisUrl })
        const { api, url } = await startApi()
        await api.line(
          ({ msg, err }) =>
            msg === 'redis.error' && String(err).includes('self-signed certificate'),
        )
        const { checks } = await readinessAt(`${url}/readyz`)
        assert.deepEqual(checks.redis, {
          ok: false,
          reason: 'not reached (DEPTH_ZERO_SELF_SIGNED_CERT)',
        })
      })
    }

    test('a certificate of Redis that nobody vouches for is in readyz of the dashboard', async (t) => {
      const { url: redisUrl } = await openServer(t, await makeCertificate(t))
      const { settings } = await prepareSluice(t, { redisUrl })
      const dashboard = startProcess(t, 'apps/dashboard/src/main.ts', settings)
      const { adminPort } = await dashboard.line(({ msg }) => msg === 'dashboard.listening')
      const { checks } = await readinessAt(`http://127.0.0.1:${adminPort}/readyz`)
      const reason = 'not reached (DEPTH_ZERO_SELF_SIGNED_CERT)'
      assert.deepEqual(checks.redis, { ok: false, reason })
    })

    test('a certificate of MongoDB that nobody vouches for is in readyz and in the verdict', async (t) => {
      const prepared = await prepareSluice(t)
      const { url: MONGODB_URL } = await overTls(
        t,
        await makeCertificate(t),
        prepared.settings.MONGODB_URL,
      )
      const [{ url }, worker] = await Promise.all([
        prepared.startApi(),
        prepared.startWorker({ MONGODB_URL }),
      ])
      const { adminPort } = await worker.line((line) => typeof line.adminPort === 'number')
      await until('the reason in readyz', async () => {
        const { checks } = await readinessAt(`http://127.0.0.1:${adminPort}/readyz`)
        const reason = 'it commits no writes (DEPTH_ZERO_SELF_SIGNED_CERT)'
        return isDeepStrictEqual(checks.mongodb, { ok: false, reason })
      })
      const { readVerdict } = await openOperator({ ...prepared, url })
      const said = /^MongoDB has been unavailable .*\(self-signed certificate/
      await until('the verdict', async () => (await readVerdict()).some((text) => said.test(text)))
    })
  },
)

async function readinessAt(url: string): Promise<Readiness> {
  return JSON.parse(await (await fetch(url)).text())
}

async function overTls(t: TestScope, certificate: Certificate, address = '') {
  const { port, seen } = await openTlsProxy(t, certificate, portOf(address))
  const url = new URL(address)
  url.port = String(port)
  url.searchParams.set('tls', 'true')
  return { url: url.href, seen }
}

function portOf(url: string): number {
  return Number(new URL(url).port)
}
