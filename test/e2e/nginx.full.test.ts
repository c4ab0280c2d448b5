import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import type { IncomingMessage } from 'node:http'
import { request } from 'node:https'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort } from '@sluice/local'
import { beforeSuite, startProcess, type TestScope } from '@sluice/test-support'
import { describe, test } from 'vitest'
import { isMissing, needs } from '../runner/programs.ts'
import { runSluice } from '../support/run-sluice.ts'
import { type SharedSluice, shareSluice } from '../support/shared-sluice.ts'
import { prepareSluice } from '../support/start-sluice.ts'
import { makeCertificate } from '../support/tls-proxy.ts'
import { until } from '../support/until.ts'
import { chunk, importHead, openWire } from './support/open-wire.ts'
import { someThread } from './support/some-thread.ts'

/**
 * Starts nginx with a configuration of `docs/operate/first-day.md`, of which some texts are
 * replaced, until it listens on the port.
 */
async function startNginx(
  t: TestScope,
  block: number,
  port: number,
  replaced: Record<string, string>,
): Promise<void> {
  const manual = await readFile(new URL('../../docs/operate/first-day.md', import.meta.url), 'utf8')
  const documented = [...manual.matchAll(/```nginx\n([\s\S]*?)```/g)][block]?.[1] ?? ''
  const servers = Object.entries(replaced).reduce((text, [from, to]) => {
    assert.ok(text.includes(from), from)
    return text.replace(from, to)
  }, documented)
  const folder = await mkdtemp(join(tmpdir(), 'sluice-nginx-'))
  const own = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    (name) => `${name}_temp_path ${folder}/${name};`,
  )
  const lines = [
    'daemon off;',
    `pid ${folder}/pid;`,
    'events {}',
    `http { access_log off; ${own.join(' ')}`,
    servers,
    '}',
  ]
  await writeFile(join(folder, 'nginx.conf'), lines.join('\n'))
  const nginx = spawn(
    'nginx',
    ['-c', join(folder, 'nginx.conf'), '-e', join(folder, 'error.log')],
    { stdio: 'ignore' },
  )
  const missing = once(nginx, 'error').then(() => {
    throw new Error('nginx is missing. On Debian: apt-get install nginx-light')
  })
  t.onTestFinished(async () => {
    nginx.kill('SIGTERM')
    if (nginx.exitCode === null && nginx.pid !== undefined) await once(nginx, 'exit')
    await rm(folder, { recursive: true })
  })
  const listens = until('nginx listens', async () => {
    const socket = connect(port, '127.0.0.1')
    const connected = await once(socket, 'connect').then(
      () => true,
      () => false,
    )
    socket.destroy()
    return connected
  })
  await Promise.race([listens, missing])
}

describe('behind nginx, by the configuration of the manual', needs('nginx'), () => {
  let sluice: SharedSluice
  let url: string
  beforeSuite(async (t) => {
    sluice = await shareSluice(t)
    const port = await freePort()
    url = `http://127.0.0.1:${port}`
    const ports = {
      '127.0.0.1:3000': new URL(sluice.url).host,
      'listen 8080': `listen 127.0.0.1:${port}`,
    }
    await startNginx(t, 0, port, ports)
  })

  test('threads are stored, and refusals reach their callers', async () => {
    // Not by the tests' caller, which refuses the headers that nginx adds.
    const post = async (key: string, body: string) => {
      const headers = { 'x-api-key': key, 'content-type': 'application/json' }
      const response = await fetch(`${url}/sources`, { method: 'POST', headers, body })
      const { code, message } = JSON.parse(await response.text())
      return [response.status, code ?? message]
    }
    const stored = [200, 'New source received successfully.']
    assert.deepEqual(await post(sluice.key, JSON.stringify(someThread())), stored)
    assert.deepEqual(await post('slc_wrong', JSON.stringify(someThread())), [
      403,
      'api_key_invalid',
    ])
    assert.deepEqual(await post(sluice.key, ' '.repeat(11 * 1024 * 1024)), [413, 'body_too_large'])
  })

  test('an import gets the result of a line before it sends the next one', async () => {
    const wire = await openWire(url)
    const type = { 'content-type': 'application/x-ndjson', 'transfer-encoding': 'chunked' }
    await wire.write(importHead({ 'x-api-key': sluice.key, ...type }))
    for (let at = 0; at < 3; at++) {
      await wire.write(chunk(`${JSON.stringify(someThread({ externalId: `lock-step-${at}` }))}\n`))
      await wire.until(new RegExp(`"externalId":"lock-step-${at}","status":200`))
    }
    await wire.write('0\r\n\r\n')
    await wire.until(/"summary":\{"received":3,"created":3/)
    wire.socket.destroy()
  })

  test('a large import passes whose caller does not wait', async () => {
    const lines = Array.from({ length: 8_000 }, (_, at) => {
      return `${JSON.stringify(someThread({ externalId: `large-${at}`, title: 'long '.repeat(390) }))}\n`
    })
    const headers = {
      'x-api-key': sluice.key,
      'content-type': 'application/x-ndjson',
      prefer: 'respond-async',
    }
    const response = await fetch(`${url}/sources:batch`, {
      method: 'POST',
      headers,
      body: lines.join(''),
    })
    const { summary } = JSON.parse(await response.text())
    assert.deepEqual([response.status, summary.received, summary.failed], [202, lines.length, 0])
  })
})

describe('the dashboard behind nginx with TLS, at a port of its own', needs('nginx'), () => {
  test.skipIf(isMissing('openssl'))(
    'takes the forms of its own pages, whether the proxy passes on the port or not',
    async (t) => {
      const [certificate, prepared, port, other] = await Promise.all([
        makeCertificate(t),
        prepareSluice(t),
        freePort(),
        freePort(),
      ])
      const origin = `https://127.0.0.1:${port}`
      const settings = { ...prepared.settings, DASHBOARD_URL: origin }
      const dashboard = startProcess(t, 'apps/dashboard/src/main.ts', settings)
      const { address } = await dashboard.line(({ msg }) => msg === 'dashboard.listening')
      const url = `http://127.0.0.1:${Object(address).port}`
      await until('the dashboard is ready', async () => (await fetch(`${url}/readyz`)).ok)
      const replaced = (to: number) => ({
        'listen 8443': `listen 127.0.0.1:${to}`,
        '/etc/ssl/sluice.pem': certificate.file,
        '/etc/ssl/sluice.key': certificate.keyFile,
        'http://127.0.0.1:3001': url,
      })
      await startNginx(t, 1, port, replaced(port))
      await startNginx(t, 1, other, { ...replaced(other), $http_host: '$host' })
      const ca = await readFile(certificate.file)
      const { stdout } = await runSluice({ settings }, 'login')
      const [linked, link = ''] = stdout.trim().split('/login?link=')
      assert.equal(linked, origin)
      const logIn = async (to: number, from: string) => {
        const headers = { origin: from, 'content-type': 'application/x-www-form-urlencoded' }
        const sent = request({
          ca,
          port: to,
          host: '127.0.0.1',
          path: '/login',
          method: 'POST',
          headers,
        })
        sent.end(new URLSearchParams({ link }).toString())
        const [response]: IncomingMessage[] = await once(sent, 'response')
        return `${response?.statusCode} ${Buffer.concat((await response?.toArray()) ?? [])}`
      }
      const refused = /^403 [\s\S]*<h1>Request refused<\/h1>[\s\S]*set DASHBOARD_URL to the address/
      for (const from of ['null', `https://127.0.0.1:${other}`])
        assert.match(await logIn(other, from), refused, from)
      assert.match(await logIn(other, origin), /^303 /)
      // Not refused as from another site, but because the link has worked once.
      assert.match(await logIn(port, origin), /^403 (?![\s\S]*Request refused)/)
      // nginx answers the command, whatever is behind it.
      const asking = ['find', 'any', '--url', origin]
      const { stderr } = await runSluice({ settings: { SLUICE_API_KEY: 'slc_1' } }, ...asking)
      assert.match(
        stderr,
        /its certificate is not trusted \(self-signed certificate.*\)\. Set NODE_EXTRA_CA_CERTS to a file/,
      )
      const trusting = { SLUICE_API_KEY: 'slc_1', NODE_EXTRA_CA_CERTS: certificate.file }
      assert.doesNotMatch(
        (await runSluice({ settings: trusting }, ...asking)).stderr,
        /certificate/,
      )
    },
  )
})
