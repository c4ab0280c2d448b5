import assert from 'node:assert/strict'
import { describe, it } from 'vitest'
import { inputFile } from '../read-all.test-support.ts'
import { readJsonRecords } from './json-records.ts'

const lists = new Set(['tickets', 'users'])

async function recordsOf(text: string, longest?: number) {
  const found = []
  for await (const records of readJsonRecords(inputFile('a.json', text), lists, longest)) found.push(...records)
  return found.map((each) =>
    each.kind === 'record'
      ? [each.list, each.place.pointer ?? '', each.value]
      : [each.reason, each.place.pointer ?? ''],
  )
}

const cases: [rule: string, text: string, records: unknown[][]][] = [
  [
    'the elements of a root list',
    '[ 1,"a,]",{"b":[2]} , [3], null]',
    [
      ['', '/0', 1],
      ['', '/1', 'a,]'],
      ['', '/2', { b: [2] }],
      ['', '/3', [3]],
      ['', '/4', null],
    ],
  ],
  ['nothing of an empty list', ' [ ] ', []],
  [
    'a root object without lists',
    '{"a": {"tickets": [1]}, "b": "tickets"}',
    [['', '', { a: { tickets: [1] }, b: 'tickets' }]],
  ],
  [
    'the elements of lists in a root object, and nothing else of it',
    '{"count": 2, "x": {"tickets": [9]}, "tickets": [{"id": 1}, {"id": 2}], "y": [{"z": 1}], "users":[3],"end":null}',
    [
      ['tickets', '/tickets/0', { id: 1 }],
      ['tickets', '/tickets/1', { id: 2 }],
      ['users', '/users/0', 3],
    ],
  ],
  [
    'several roots of any kind',
    '{"a":1}\n{"tickets":[2]} [3]\n4 {"users":{}}',
    [
      ['', '', { a: 1 }],
      ['tickets', '/tickets/0', 2],
      ['', '/0', 3],
      ['', '', 4],
      ['', '', { users: {} }],
    ],
  ],
  [
    'strings with escapes and brackets',
    '["\\"]\\\\", "{"]',
    [
      ['', '/0', '"]\\'],
      ['', '/1', '{'],
    ],
  ],
  [
    'a record that is no JSON, as rejected',
    '[{"a": b}, {"c": 1}]',
    [
      [`The record is not JSON: ${reasonOf('{"a": b}')}.`, '/0'],
      ['', '/1', { c: 1 }],
    ],
  ],
]

describe('reading JSON records gives', () => {
  for (const [rule, text, records] of cases) it(rule, async () => assert.deepEqual(await recordsOf(text), records))

  it('a record that is too long as rejected, and the others', async () => {
    const text = JSON.stringify([1, 'x'.repeat(100), 2])
    assert.deepEqual(await recordsOf(text, 50), [
      ['', '/0', 1],
      ['The record is longer than 50 bytes.', '/1'],
      ['', '/2', 2],
    ])
  })
})

function reasonOf(text: string): string {
  try {
    return JSON.parse(text)
  } catch (error) {
    return error instanceof Error ? error.message : ''
  }
}
