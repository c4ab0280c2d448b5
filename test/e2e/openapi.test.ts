import assert from 'node:assert/strict'
import { once } from 'node:events'
import { get, type IncomingMessage } from 'node:http'
import { buffer } from 'node:stream/consumers'
import { gunzipSync } from 'node:zlib'
import { describeApi } from '@sluice/api/openapi'
import { DEFAULT_LIMITS, PROBLEMS } from '@sluice/contract'
import { createKey } from '@sluice/credentials/keys'
import { beforeSuite } from '@sluice/test-support'
import { describe, test } from 'vitest'
import { startSluice, type TestSluice } from '../support/start-sluice.ts'
import { type Caller, createCaller } from './support/caller.ts'
import { problemIn } from './support/read-reply.ts'

// `createCaller` compares each answer with the description.

const limits = { ...DEFAULT_LIMITS, title: 77 }

describe('the API explains itself', () => {
  let sluice: TestSluice
  let callers: Record<string, Caller>
  let stranger: Caller
  beforeSuite(async (t) => {
    sluice = await startSluice(t, { settings: { MAX_TITLE: String(limits.title) } })
    const { url, db } = sluice
    stranger = createCaller({ url })
    const operator = createCaller({
      url,
      key: (await createKey(db, { role: 'operator', name: 'on call' })).key,
    })
    const viewer = createCaller({
      url,
      key: (await createKey(db, { role: 'viewer', name: 'looks' })).key,
    })
    callers = { importer: createCaller(sluice), operator, viewer, open: stranger }
  })

  test('GET /openapi.json answers the description of the API, with its limits', async () => {
    const { status, text } = await stranger.get('/openapi.json')
    assert.equal(status, 200)
    const described = JSON.parse(text)
    assert.deepEqual(described, JSON.parse(JSON.stringify(describeApi(limits))))
    assert.equal(described.components.schemas.Thread.properties.title.maxLength, limits.title)
  })

  const routes = Object.entries(describeApi(DEFAULT_LIMITS).paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, { security, tags }]) => ({
      method: method.toUpperCase(),
      needsRight: tags.includes('Deletions'),
      path: path.replaceAll(/\{\w+\}/g, 'unknown'),
      roles: security.flatMap(({ key }) => key),
    })),
  )
  for (const { method, path, roles, needsRight } of routes) {
    const isOpen = roles.length === 0
    test(`${method} ${path} is served to ${isOpen ? 'everybody' : `each ${roles.join(' and ')}, and to nobody else`}`, async () => {
      for (const [sender, caller] of Object.entries(callers)) {
        const reply = await caller.send(path, { method })
        const isServed = isOpen || roles.some((role) => role === sender)
        if (isServed)
          assert.ok(reply.status !== 403 && reply.status !== 405, `${reply.status} to ${sender}`)
        else if (sender === 'open') problemIn(reply, 403, 'api_key_invalid')
        else if (needsRight) problemIn(reply, 403, 'deletes_forbidden')
        else problemIn(reply, 403, roles.includes('importer') ? 'importer_only' : 'operator_only')
      }
    })
  }

  const examples = Object.entries(describeApi(DEFAULT_LIMITS).paths).flatMap(([path, methods]) =>
    Object.entries(methods).flatMap(([method, { requestBody, security }]) =>
      Object.entries(requestBody?.content ?? {}).flatMap(([mediaType, content]) =>
        Object.values(content.examples ?? {}).map((example) => ({
          method: method.toUpperCase(),
          path,
          mediaType,
          role: security[0]?.key[0] ?? 'open',
          example,
        })),
      ),
    ),
  )
  for (const { method, path, mediaType, role, example } of examples) {
    test(`the example of ${method} ${path} as ${mediaType} is accepted`, async () => {
      const { value: body } = Object(example)
      const reply = await callers[role]?.send(path, {
        method,
        headers: { 'content-type': mediaType },
        body,
      })
      assert.ok(reply !== undefined && reply.status < 400, `${reply?.status} ${reply?.text}`)
      assert.doesNotMatch(reply.text, /"failed":[1-9]/)
    })
  }

  const queries = Object.entries(describeApi(DEFAULT_LIMITS).paths).flatMap(([path, { get }]) => {
    const inQuery = get?.parameters.filter((parameter) => parameter.in === 'query') ?? []
    const query = inQuery.flatMap(({ name, schema }) => {
      const [example] = Object(schema).examples ?? []
      return example === undefined ? [] : [[name, String(example)] satisfies [string, string]]
    })
    const [id] = Object(get?.parameters.find(({ name }) => name === 'id')?.schema).examples ?? []
    const roles = get?.security.flatMap(({ key }) => key) ?? []
    const role = roles.find((one) => one === 'operator') ?? roles[0] ?? 'open'
    return query.length === 0 ? [] : [{ path: path.replace('{id}', id), query, role }]
  })
  for (const { path, query, role } of queries)
    test(`the examples of the parameters of GET ${path} are valid together`, async () => {
      const reply = await callers[role]?.get(`${path}?${new URLSearchParams(query)}`)
      assert.ok(reply?.status === 200 || reply?.status === 404, `${reply?.status} ${reply?.text}`)
    })

  test('/ and /docs/ lead to /docs', async () => {
    for (const path of ['/', '/docs/']) {
      const { status, headers } = await stranger.get(path)
      assert.deepEqual(
        [status, new URL(headers.get('location') ?? '', sluice.url + path).pathname],
        [302, '/docs'],
      )
    }
  })

  test('/docs without JavaScript links to what needs none, also behind a proxy that adds a prefix', async () => {
    const plain = /<noscript>(.*)<\/noscript>/s.exec((await stranger.get('/docs')).text)?.[1] ?? ''
    const links = Array.from(
      plain.matchAll(/href="([^"]+)"/g),
      ([, href = '']) => new URL(href, 'http://a/prefix/docs').pathname,
    )
    assert.deepEqual(links, ['/prefix/docs/problems', '/prefix/openapi.json'])
  })

  test('/docs/problems has a section for each problem', async () => {
    const { text } = await stranger.get('/docs/problems')
    const sections = Array.from(text.matchAll(/<section id="(\w+)">/g), ([, id]) => id)
    assert.deepEqual(sections, Object.keys(PROBLEMS))
  })

  test('the files of the pages are served compressed and as they are, and no other file is', async () => {
    const { text } = await stranger.get('/docs')
    const paths = Array.from(
      text.matchAll(/(?:src|href)="(docs\/assets\/[^"]+)"/g),
      ([, path]) => `/${path}`,
    )
    assert.equal(paths.length, 4)
    for (const path of paths) {
      const [plain, zipped] = await Promise.all(
        ['identity', 'gzip'].map((coding) => getFile(sluice.url + path, coding)),
      )
      assert.equal(plain?.headers['content-encoding'], undefined)
      assert.equal(zipped?.headers['content-encoding'], 'gzip')
      assert.match(plain?.headers['cache-control'] ?? '', /max-age/)
      assert(plain?.body.equals(gunzipSync(zipped?.body ?? '')))
    }
    for (const name of [
      'nothing',
      'constructor',
      'swagger-ui.js',
      '..%2f..%2f..%2fpackage.json',
      '%2e%2e%2fpages.ts',
    ])
      problemIn(await stranger.get(`/docs/assets/${name}`), 404, 'route_unknown')
  })
})

/**
 * Gets a file by plain HTTP: undici (7) throws beside its callers if a connection closes while a
 * large answer is paused.
 */
async function getFile(url: string, coding: string) {
  const [response]: IncomingMessage[] = await once(
    get(url, { headers: { 'accept-encoding': coding } }),
    'response',
  )
  assert(response)
  return { headers: response.headers, body: await buffer(response) }
}
