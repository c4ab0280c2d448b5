import assert from 'node:assert/strict'
import { test } from 'vitest'
import { exists, namedTests, rowsWithoutTest } from './named-tests.ts'
import { readDocument } from './names.ts'

for (const path of ['SECURITY.md', 'docs/reliability.md', 'docs/scaling.md']) {
  test(`each row of ${path} names a test that exists`, () => {
    const document = readDocument(path)
    const named = namedTests(document)
    assert.notEqual(named.length, 0)
    assert.deepEqual(rowsWithoutTest(document), [])
    assert.deepEqual(
      named.filter((one) => !exists(one)),
      [],
    )
  })
}

test('a row without a test, a file that is gone and a title that changed are found', () => {
  const row = (test: string) => `| fault | promise | ${test} | figure |`
  const head = '| fault | promise | test | figure |\n| --- | --- | --- | --- |'
  const gone = '`test/docs/gone.test.ts`: a title'
  const changed = '`test/docs/docs.test.ts`: no such … title'
  const right = '`test/docs/named-tests.test.ts`: a row without a test, … are found'
  const document = [head, row('none'), row(`${gone}<br>${changed}`), row(right)].join('\n')
  assert.deepEqual(rowsWithoutTest(document), [row('none')])
  assert.deepEqual(namedTests(document).map(exists), [false, false, true])
})
