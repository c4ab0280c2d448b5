import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import { type TestContext, test } from 'vitest'
import { fetchWithin } from './answers.ts'
import { runCommand } from './commands.test-support.ts'

/** Starts a server, and returns its address. */
async function serve(t: TestContext, answer: RequestListener): Promise<string> {
  const server = createServer(answer).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.onTestFinished(() => void server.close().closeAllConnections())
  return `http://127.0.0.1:${Object(server.address()).port}`
}

const run = (url: string, name: Parameters<typeof runCommand>[1], ...args: string[]) =>
  runCommand({ folder: '/', env: { SLUICE_API_KEY: 'slc_1' } }, name, [...args, '--url', url])

const ASKING = [
  ['list'],
  ['export', '-'],
  ['get', 'slack', '1'],
  ['jobs', 'list'],
  ['jobs', 'groups'],
  ['jobs', 'show', '1'],
  ['jobs', 'operations'],
  ['tail', '--no-follow'],
  ['status'],
  ['pause', 'bulk'],
] as const

const HOSTILE = 'a\u009b2J\u202eb'

for (const [what, status, body] of [
  ['no JSON', 200, '<html>'],
  ['null', 200, 'null'],
  [
    'lists of nothing',
    200,
    '{"sources":[null],"quotes":[null],"source":{},"jobs":[null],"groups":[{}],"operations":[{}]}',
  ],
  ['an error of a proxy', 500, '<html>'],
  ['a problem whose faults are none', 400, `{"code":"a","detail":"${HOSTILE}","errors":[null]}`],
] as const) {
  test(`an answer with ${what} is an error of one line, and no stack`, async (t) => {
    const url = await serve(t, (_request, response) => void response.writeHead(status).end(body))
    for (const [name, ...args] of ASKING) {
      const { code, stderr, stdout } = await run(url, name, ...args)
      assert.deepEqual([code, stdout], [1, ''], name)
      assert.match(stderr, /^error: [^\p{C}]+\n( {2}[^\p{C}]+\n)?$/u)
      if (status === 500) assert.match(stderr, /has the status 500, .* Check the URL\./)
    }
  })
}

test('https for a port without TLS is said as such', async (t) => {
  const url = await serve(t, (_request, response) => void response.end())
  const { stderr } = await run(url.replace('http:', 'https:'), 'status')
  assert.match(stderr, /its port has no TLS\. Write http:\/\/ instead of https:\/\//)
})

test('the texts of a refusal can neither steer the terminal nor be taken for another line', async (t) => {
  const problem = { code: HOSTILE, detail: `${HOSTILE}\u001b[2J`, errors: [{ message: HOSTILE }] }
  const url = await serve(
    t,
    (_request, response) => void response.writeHead(400).end(JSON.stringify(problem)),
  )
  for (const [name, ...args] of ASKING) {
    const { stderr } = await run(url, name, ...args)
    assert.match(
      stderr,
      /^error: a\ufffd2J\ufffdb\ufffd\[2J \(400 a\ufffd2J\ufffdb\)\s+a\ufffd2J\ufffdb\n$/,
    )
  }
})

const source = {
  ...{
    id: 'a',
    service: 'slack',
    externalId: HOSTILE,
    title: HOSTILE,
    description: null,
    status: 'TRANSCRIBED',
  },
  ...{
    wordCount: 1,
    createdAt: '2024-05-01T00:00:00.000Z',
    quoteCount: 1,
    acceptedAt: '2024-05-01T00:00:00.000Z',
  },
}

test('no text of a stored thread steers the terminal, and `--json` loses nothing of it', async (t) => {
  const url = await serve(
    t,
    (_request, response) => void response.end(JSON.stringify({ sources: [source] })),
  )
  const table = await run(url, 'list')
  assert.equal(table.stderr, '')
  assert.match(
    table.stdout.split('\n')[1] ?? '',
    /^2024-05-01T00:00Z {2}slack .* a\ufffd2J\ufffdb +a\ufffd2J\ufffdb$/,
  )
  const { stdout } = await run(url, 'list', '--json')
  assert.doesNotMatch(stdout, /(?!\n)\p{C}/u)
  assert.deepEqual(JSON.parse(stdout), [source])
})

test('a list of one service goes on after a page whose sources are all of others', async (t) => {
  const url = await serve(t, ({ url: path = '' }, response) => {
    const isSecond = path.includes('after=a')
    response.end(JSON.stringify(isSecond ? { sources: [source] } : { sources: [], next: 'a' }))
  })
  const { stderr, stdout } = await run(url, 'list', '--service', 'slack', '--json')
  assert.equal(stderr, '')
  assert.deepEqual(JSON.parse(stdout), [source])
})

test('every command says within seconds that an API hangs', async (t) => {
  const url = await serve(t, () => {})
  const began = performance.now()
  const ran = await Promise.all(ASKING.map(([name, ...args]) => run(url, name, ...args)))
  assert.ok(performance.now() - began < 12_000)
  for (const { stderr } of ran)
    assert.match(
      stderr,
      /^error: (Nothing was changed\. )?The API at \S+ cannot be reached: it does not answer\.\n$/,
    )
}, 60_000)

test('an answer that takes too long is given up', async (t) => {
  const silent = await serve(t, (_request, response) => void response.write(' '))
  await assert.rejects(async () => (await fetchWithin(50)(silent)).text(), {
    name: 'TimeoutError',
  })
})

test('the paths of every command are relative to the path of --url', async (t) => {
  const paths = new Set<string>()
  const url = await serve(t, ({ url = '' }, response) => {
    paths.add(url.split('?')[0] ?? '')
    response.writeHead(404).end()
  })
  for (const end of ['/a/b', '/a/b/', '/a/b?c=d/'])
    for (const [name, ...args] of ASKING) await run(`${url}${end}`, name, ...args)
  assert.deepEqual([...paths].sort(), [
    '/a/b/admin/job-groups',
    '/a/b/admin/jobs',
    '/a/b/admin/jobs/1',
    '/a/b/admin/lanes/bulk:pause',
    '/a/b/admin/operations',
    '/a/b/admin/overview',
    '/a/b/admin/recent',
    '/a/b/livez',
    '/a/b/sources',
    '/a/b/sources:export',
  ])
})

test('a URL with a password and a key with other characters are refused, and not repeated', async () => {
  const withPassword = await run('http://ada:secret@127.0.0.1:9', 'status')
  assert.match(withPassword.stderr, /^error: --url must not have a user or a password.\n$/)
  const deps = { folder: '/', env: { SLUICE_API_KEY: 'slc_é' } }
  for (const name of ['status', 'list'] as const)
    assert.equal(
      (await runCommand(deps, name, ['--url', 'http://127.0.0.1:9'])).stderr,
      'error: The key has characters that no key of Sluice has.\n',
    )
})
