// Sends a request to each route, for the tests of what processes need from their servers.
import assert from 'node:assert/strict'
import type { Caller } from './caller.ts'
import { pathOf, ROUTES } from './documented.ts'
import { someThread } from './some-thread.ts'

/**
 * Sends a request to each route. A GET route needs a line here only if its query is required. Fails
 * with the routes that got no request, or only requests that were refused as invalid.
 * @param id the id of a stored source.
 */
export async function sendToEveryRoute(
  { importer, operator }: Record<'importer' | 'operator', Caller>,
  id: string,
): Promise<void> {
  const unanswered = new Set(ROUTES)
  async function send(caller: Caller, method: string, path: string, body?: object): Promise<void> {
    const headers = { 'content-type': 'application/json' }
    const { status } = await caller.send(path, { method, ...(body && { headers, body }) })
    if (status < 400 || status === 404) unanswered.delete(`${method} ${pathOf(path)}`)
  }
  const reads = ROUTES.filter((route) => route.startsWith('GET ')).map((route) => route.slice(4))
  for (const caller of [importer, operator])
    for (const path of reads) await send(caller, 'GET', path.replaceAll(/\{\w+\}/g, id))
  await send(importer, 'GET', '/sources?service=slack&externalId=none')
  await send(operator, 'GET', `/admin/find?q=${id}`)

  await send(importer, 'POST', '/erasures', { speaker: 'nobody', suppress: true })
  const absent = 'x'.repeat(24)
  await send(importer, 'DELETE', `/suppressions/${absent}`)
  await send(importer, 'DELETE', '/sources?service=slack&externalId=none')
  await send(importer, 'DELETE', `/sources/${absent}`)
  await send(importer, 'DELETE', `/sources/${absent}/quotes?externalId=none`)
  await send(importer, 'DELETE', `/sources/${absent}/quotes/${absent}${absent}`)
  await send(importer, 'POST', '/sources:delete', [{ id: absent }])
  await send(importer, 'POST', '/sources', someThread())
  await send(importer, 'POST', '/sources:batch', [someThread()])
  await send(importer, 'POST', '/sources:lookup', { service: 'slack', externalIds: ['none'] })
  for (const act of ['pause', 'resume']) await send(operator, 'POST', `/admin/lanes/bulk:${act}`)
  for (const act of ['retry', 'discard'])
    await send(operator, 'POST', `/admin/jobs:${act}`, { filter: {} })
  assert.deepEqual([...unanswered], [])
}
