import assert from 'node:assert/strict'
import type { Hit } from '@sluice/contract'
import { test } from 'vitest'
import { hitCells, jobTable } from './find.ts'

const HIT: Hit = {
  kind: 'job',
  id: 'a',
  tenant: 'acme',
  state: 'completed',
  name: 'slack/a & b',
  threads: 1,
  traceId: '4bf9',
}

test('a hit links to the page of its thread and, by TRACE_URL, to its trace', () => {
  const row = String(hitCells(HIT, 'https://traces.example/{traceId}?a=1&b'))
  assert.match(row, /href="\/thread\?tenant=acme&amp;service=slack&amp;externalId=a\+%26\+b"/)
  assert.match(row, /href="https:\/\/traces\.example\/4bf9\?a=1&amp;b"/)
  assert.doesNotMatch(String(hitCells(HIT, null)), /Trace/)
})

test('on the page of a thread, its jobs are listed by their ids only', () => {
  const { name: _, ...nameless } = HIT
  const [what] = hitCells(nameless, null)
  assert.equal(String(what), '<div class="note"><a class="id" href="/jobs/a">job a</a></div>')
})

test('a job of several threads shows their number apart from the name, which may be cut', () => {
  const list = String(jobTable('Jobs', [{ ...HIT, name: 'slack/a … slack/b (50)' }]))
  assert.match(list, /<a href="\/jobs\/a"[^>]*>slack\/a … slack\/b<\/a> \(50\)<\/span>/)
})

test('a job of several threads links to none of them', () => {
  assert.doesNotMatch(
    String(hitCells({ ...HIT, threads: 2, name: 'slack/a … slack/b (2)' }, null)),
    /thread\?/,
  )
})
