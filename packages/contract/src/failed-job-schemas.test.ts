import assert from 'node:assert/strict'
import { test } from 'vitest'
import { parseFailedJobQuery, parseOperationRequest } from './failed-job-schemas.ts'
import { DEFAULT_LIMITS } from './thread-request.ts'

const parse = (body: unknown) =>
  parseOperationRequest(Buffer.from(JSON.stringify(body)), DEFAULT_LIMITS)

test('a query gives a filter, a limit and a place', () => {
  const id = '01900000-0000-7000-8000-000000000000'
  assert.deepEqual(parseFailedJobQuery([]), { ok: true, value: { filter: {}, limit: 50 } })
  assert.deepEqual(
    parseFailedJobQuery(new URLSearchParams(`tenant=acme&limit=7&after=12.${id}&since=2024-05-01`)),
    {
      ok: true,
      value: { filter: { tenant: 'acme', since: '2024-05-01' }, limit: 7, after: { at: 12, id } },
    },
  )
})

for (const [what, query, pointer, code] of [
  ['an unknown parameter', { tennant: 'acme' }, '/tennant', 'unknown_field'],
  ['a repeated parameter', 'tenant=acme&tenant=globex', '/tenant', 'duplicate'],
  ['a service that does not exist', { service: 'fax' }, '/service', 'enum'],
  ['a date that does not exist', { until: '2024-02-30' }, '/until', 'date'],
  ['a limit of zero', { limit: '0' }, '/limit', 'type'],
  ...['0x10', '1e1', ' 7', '+7', '7.0', '٧', ''].map(
    (limit) => [`the limit ${JSON.stringify(limit)}`, { limit }, '/limit', 'type'] as const,
  ),
  ['a limit beyond the bound', { limit: '101' }, '/limit', 'type'],
  ['a place of another form', { after: 'x' }, '/after', 'type'],
  ['a blank tenant', { tenant: '' }, '/tenant', 'required'],
  ['a blank reason', { reason: ' ' }, '/reason', 'required'],
  ['a long text', { tenant: 'x'.repeat(201) }, '/tenant', 'too_long'],
] as const) {
  test(`a query with ${what} is a fault`, () => {
    const parsed = parseFailedJobQuery(new URLSearchParams(query))
    assert.ok(!parsed.ok)
    assert.deepEqual(
      parsed.errors.map((fault) => [fault.pointer, fault.code]),
      [[pointer, code]],
    )
  })
}

test('a limit in another form than decimal digits is refused with its bounds', () => {
  const parsed = parseFailedJobQuery(new URLSearchParams({ limit: '0x10' }))
  const message = 'limit must be a whole number from 1 to 100.'
  assert.deepEqual(parsed, {
    ok: false,
    errors: [{ pointer: '/limit', code: 'type', message }],
    total: 1,
  })
})

test('a text of another form is refused with the form that it must have', () => {
  const texts = { group: 'x', operation: 'x', after: 'x' }
  const parsed = parseFailedJobQuery(new URLSearchParams(texts))
  assert.ok(!parsed.ok)
  assert.deepEqual(
    parsed.errors.map(({ message }) => message),
    [
      'group must match the pattern ^[0-9a-f]{8}$.',
      'operation must be a UUID.',
      'after must be `next` of an earlier page.',
    ],
  )
})

test('an operation names ids or a filter', () => {
  assert.deepEqual(parse({ ids: ['a'] }), { ok: true, value: { ids: ['a'] } })
  assert.deepEqual(parse({ filter: {} }), { ok: true, value: { filter: {} } })
})

for (const [what, body, pointer, code] of [
  ['nothing', {}, '', 'required'],
  ['ids and a filter', { ids: [], filter: {} }, '', 'required'],
  ['no object', [], '', 'type'],
  ['an unknown field', { filter: { tennant: 'acme' } }, '/filter/tennant', 'unknown_field'],
  ['too many ids', { ids: Array(1_001).fill('a') }, '/ids', 'too_many'],
  ['ids that are no text', { ids: [1] }, '/ids/0', 'type'],
] as const) {
  test(`an operation with ${what} is a fault`, () => {
    const parsed = parse(body)
    assert.ok(!parsed.ok)
    assert.deepEqual(
      parsed.errors.map((fault) => [fault.pointer, fault.code]),
      [[pointer, code]],
    )
  })
}
