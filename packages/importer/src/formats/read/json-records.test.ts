import assert from 'node:assert/strict'
import { describe, it } from 'vitest'
import { inputFile } from '../read-all.test-support.ts'
import { LONGEST_RECORD_BYTES } from './bounded-bytes.ts'
import { readJsonFile, recordsAndLists } from './json-records.ts'

const lists = recordsAndLists('tickets', 'users')

async function recordsOf(content: string | Buffer, paths = lists) {
  const found = []
  for await (const records of readJsonFile(inputFile('a.json', content), paths))
    found.push(...records)
  return found.map((each) =>
    each.kind === 'record'
      ? [each.path, each.place.pointer ?? '', each.value]
      : [each.kind === 'page' ? 'page' : each.reason, each.place.pointer ?? ''],
  )
}

const cases: [rule: string, text: string, records: unknown[][]][] = [
  [
    'the elements of a root list',
    '[ 1,"a,]",{"b":[2]} , [3], null]',
    [
      ['/*', '/0', 1],
      ['/*', '/1', 'a,]'],
      ['/*', '/2', { b: [2] }],
      ['/*', '/3', [3]],
      ['/*', '/4', null],
    ],
  ],
  ['nothing of an empty list', ' [ ] ', []],
  [
    'a root object without lists',
    '{"a": {"tickets": [1]}, "b": "tickets"}',
    [['', '', { a: { tickets: [1] }, b: 'tickets' }]],
  ],
  [
    'the elements of lists in a root object, and what else it says of its pages',
    '{"count": 2, "x": {"tickets": [9]}, "tickets": [{"id": 1}, {"id": 2}], "y": [{"z": 1}], "users":[3],"end":null}',
    [
      ['/tickets/*', '/tickets/0', { id: 1 }],
      ['/tickets/*', '/tickets/1', { id: 2 }],
      ['/users/*', '/users/0', 3],
      ['page', ''],
    ],
  ],
  [
    'several roots of any kind',
    '{"a":1}\n{"tickets":[2]} [3]\n4 {"users":{}}',
    [
      ['', '', { a: 1 }],
      ['/tickets/*', '/tickets/0', 2],
      ['/*', '/0', 3],
      ['', '', 4],
      ['', '', { users: {} }],
    ],
  ],
  [
    'strings with escapes and brackets',
    '["\\"]\\\\", "{"]',
    [
      ['/*', '/0', '"]\\'],
      ['/*', '/1', '{'],
    ],
  ],
  [
    'a record that is no JSON, as rejected',
    '[{"a": b}, {"c": 1}]',
    [
      [`The record is not JSON: ${reasonOf('{"a": b}')}.`, '/0'],
      ['/*', '/1', { c: 1 }],
    ],
  ],
]

describe('reading JSON records gives', () => {
  for (const [rule, text, records] of cases)
    it(rule, async () => assert.deepEqual(await recordsOf(text), records))

  it('a record that is too long as rejected, and the others', async () => {
    const text = JSON.stringify([1, 'x'.repeat(LONGEST_RECORD_BYTES), 2])
    assert.deepEqual(await recordsOf(text), [
      ['/*', '/0', 1],
      ['The record is longer than 33554432 bytes.', '/1'],
      ['/*', '/2', 2],
    ])
  })

  it('a record that is not UTF-8 as rejected, and the others', async () => {
    assert.deepEqual(await recordsOf(Buffer.from('["caf\xe9", "cafe"]', 'latin1')), [
      ['The record is not UTF-8 (see --encoding).', '/0'],
      ['/*', '/1', 'cafe'],
    ])
  })

  for (const [text, records] of [
    ['[1, ', [['/*', '/0', 1]]],
    ['{"tickets": [', []],
    [' ', []],
  ] as const)
    it(`what stands before the end of ${JSON.stringify(text)}, which comes too soon`, async () => {
      assert.deepEqual(await recordsOf(text), [
        ...records,
        ['The file ends before its JSON does.', ''],
      ])
    })

  it('what can be read of a text whose commas and brackets are wrong', async () => {
    assert.deepEqual(await recordsOf('[1 {"a": 2}],, ] {"b": 3, }'), [
      ['/*', '/0', 1],
      ['/*', '/1', { a: 2 }],
      [`The record is not JSON: ${reasonOf('{"b": 3, }')}.`, ''],
    ])
  })
})

describe('chosen values', () => {
  const paths = ['/chat/name', '/chat/messages/*', '/chats/list/*/id', '/chats/list/*/messages/*']
  const text = JSON.stringify({
    skipped: { messages: [{ id: 0 }], text: 'a "quoted" ] } \\' },
    chat: { name: 'Zoë 😀', messages: [{ id: 1, text: '"]}\\"' }, [], 'x', -1.5e3, true], id: 7 },
    name: 'chat',
    chats: { list: [{ id: 5, messages: ['a'] }, 6, { messages: ['b', 'c'], id: 7 }] },
  })
  const values = [
    ['/chat/name', '/chat/name', 'Zoë 😀'],
    ['/chat/messages/*', '/chat/messages/0', { id: 1, text: '"]}\\"' }],
    ['/chat/messages/*', '/chat/messages/1', []],
    ['/chat/messages/*', '/chat/messages/2', 'x'],
    ['/chat/messages/*', '/chat/messages/3', -1500],
    ['/chat/messages/*', '/chat/messages/4', true],
    ['/chats/list/*/id', '/chats/list/0/id', 5],
    ['/chats/list/*/messages/*', '/chats/list/0/messages/0', 'a'],
    ['/chats/list/*/messages/*', '/chats/list/2/messages/0', 'b'],
    ['/chats/list/*/messages/*', '/chats/list/2/messages/1', 'c'],
    ['/chats/list/*/id', '/chats/list/2/id', 7],
  ]

  it('come with their paths and pointers', async () => {
    assert.deepEqual(await recordsOf(text, paths), values)
  })

  it('are the same with white space and a byte order mark', async () => {
    const spaced = JSON.stringify(JSON.parse(text), null, '\t\r\n')
    assert.deepEqual(await recordsOf(`\ufeff ${spaced}\n`, paths), values)
  })

  it('may be the root', async () => {
    assert.deepEqual(await recordsOf('{"chat": [1]}', ['']), [['', '', { chat: [1] }]])
    assert.deepEqual(await recordsOf('12', ['']), [['', '', 12]])
  })

  it('have the line on which they begin', async () => {
    const lines = []
    for await (const records of readJsonFile(inputFile('a.json', '[\n{"a":\n1},\n"b\\n", 2\n]'), [
      '/*',
    ]))
      lines.push(...records.map(({ place }) => place.line))
    assert.deepEqual(lines, [2, 4, 4])
  })
})

function reasonOf(text: string): string {
  try {
    return JSON.parse(text)
  } catch (error) {
    return error instanceof Error ? error.message : ''
  }
}
