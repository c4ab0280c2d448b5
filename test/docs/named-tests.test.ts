import assert from 'node:assert/strict'
import { test } from 'vitest'
import { rowsWithoutTest, unnamedTests } from './named-tests.ts'
import { readDocument } from './names.ts'

const promises = readDocument('docs/promises.md')

test('each row of docs/promises.md names tests that exist', () => {
  assert.deepEqual(rowsWithoutTest(promises), [])
})

test('docs/promises.md names each test of a law, a fault, an attack or an overload', () => {
  assert.deepEqual(unnamedTests(promises), [])
})

test('a row without a test, a test that is gone and a test without a row are found', () => {
  const row = (tests: string) => `| a promise | ${tests} |`
  const right = row('`test/docs/named-tests.test.ts`')
  const wrong = [row(''), row('`test/docs/named-tests.test.ts`, `test/docs/gone.test.ts`')]
  const head = ['| promise | test |', '| --- | --- |']
  assert.deepEqual(rowsWithoutTest([...head, right, ...wrong].join('\n')), wrong)
  const [first = ''] = unnamedTests('')
  assert.deepEqual(unnamedTests(promises.replaceAll(`\`${first}\``, '')), [first])
})
