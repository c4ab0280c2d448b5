import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort } from '@sluice/local'
import { beforeSuite, type TestScope } from '@sluice/test-support'
import { describe, test } from 'vitest'
import { needs } from '../runner/programs.ts'
import { type SharedSluice, shareSluice } from '../support/shared-sluice.ts'
import { until } from '../support/until.ts'
import { chunk, importHead, openWire } from './support/open-wire.ts'
import { someThread } from './support/some-thread.ts'

/** Starts nginx with the configuration of `docs/operating.md`. Returns its URL. */
async function startNginx(t: TestScope, apiUrl: string): Promise<string> {
  const manual = await readFile(new URL('../../docs/operating.md', import.meta.url), 'utf8')
  const documented = /```nginx\n([\s\S]*?)```/.exec(manual)?.[1] ?? ''
  const port = await freePort()
  const servers = documented
    .replace('127.0.0.1:3000', new URL(apiUrl).host)
    .replace('listen 8080', `listen 127.0.0.1:${port}`)
  const folder = await mkdtemp(join(tmpdir(), 'sluice-nginx-'))
  const own = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((name) => `${name}_temp_path ${folder}/${name};`)
  const lines = [
    'daemon off;',
    `pid ${folder}/pid;`,
    'events {}',
    `http { access_log off; ${own.join(' ')}`,
    servers,
    '}',
  ]
  await writeFile(join(folder, 'nginx.conf'), lines.join('\n'))
  const nginx = spawn('nginx', ['-c', join(folder, 'nginx.conf'), '-e', join(folder, 'error.log')], { stdio: 'ignore' })
  const missing = once(nginx, 'error').then(() => {
    throw new Error('nginx is missing. On Debian: apt-get install nginx-light')
  })
  t.onTestFinished(async () => {
    nginx.kill('SIGTERM')
    if (nginx.exitCode === null && nginx.pid !== undefined) await once(nginx, 'exit')
    await rm(folder, { recursive: true })
  })
  const url = `http://127.0.0.1:${port}`
  const answers = until('nginx answers', () =>
    fetch(`${url}/livez`).then(
      ({ ok }) => ok,
      () => false,
    ),
  )
  await Promise.race([answers, missing])
  return url
}

describe('behind nginx, by the configuration of the manual', needs('nginx'), () => {
  let sluice: SharedSluice
  let url: string
  beforeSuite(async (t) => {
    sluice = await shareSluice(t)
    url = await startNginx(t, sluice.url)
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
    assert.deepEqual(await post('slc_wrong', JSON.stringify(someThread())), [403, 'api_key_invalid'])
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
    const headers = { 'x-api-key': sluice.key, 'content-type': 'application/x-ndjson', prefer: 'respond-async' }
    const response = await fetch(`${url}/sources:batch`, { method: 'POST', headers, body: lines.join('') })
    const { summary } = JSON.parse(await response.text())
    assert.deepEqual([response.status, summary.received, summary.failed], [202, lines.length, 0])
  })
})
