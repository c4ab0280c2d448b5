import assert from 'node:assert/strict'
import { test } from 'vitest'
import { getDocs } from './pages.ts'

test('/docs without JavaScript links to what needs none', async () => {
  const answer = await getDocs()(undefined as never, undefined as never)
  const html = answer !== 'streamed' && 'bytes' in answer ? String(answer.bytes) : ''
  const plain = /<noscript>(.*)<\/noscript>/s.exec(html)?.[1] ?? ''
  const links = [...plain.matchAll(/href="([^"]+)"/g)].map(
    ([, href = '']) => new URL(href, 'http://a/prefix/docs').pathname,
  )
  assert.deepEqual(links, ['/prefix/docs/problems', '/prefix/openapi.json'])
})
