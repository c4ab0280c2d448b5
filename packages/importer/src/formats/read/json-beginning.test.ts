import assert from 'node:assert/strict'
import { describe, it } from 'vitest'
import { jsonShape } from './json-beginning.ts'

const cases: [
  rule: string,
  beginning: string,
  root: string,
  isOneLine: boolean,
  members: string[],
][] = [
  [
    'the paths of its members',
    '{"a": 1, "b": {"c": [{"d": [["e"]]}]}}',
    '{',
    true,
    ['a', 'b', 'b.c', 'b.c[].d'],
  ],
  ['a root list', ' [{"a": "b"}, {"c": {"d": 1}}]', '[', true, ['[].a', '[].c', '[].c.d']],
  ['only the first of several roots', '{"a": 1}\n{"b": 2}', '{', true, ['a']],
  ['a root of several lines', '{\n"a": 1}', '{', false, ['a']],
  ['a beginning that ends anywhere', '{"a": "\\"b\\": [", "c": {"d', '{', true, ['a', 'c']],
  [
    'no members of levels that no format looks at',
    `{"a":{"b":${'['.repeat(30)}{"c":1${'}]'.repeat(30)}`,
    '{',
    true,
    ['a', 'a.b'],
  ],
  ['nothing of what is not JSON', 'From: a@example.org\n', 'F', true, []],
  ['nothing of an empty file', '', '', true, []],
]

describe('the shape of a JSON file shows', () => {
  for (const [rule, beginning, root, isOneLine, members] of cases) {
    it(rule, () => {
      const shape = jsonShape(Buffer.from(beginning))
      assert.deepEqual(
        [shape.root, shape.isOneLine, [...shape.members]],
        [root, isOneLine, members],
      )
    })
  }
})
