import assert from 'node:assert/strict'
import { test } from 'vitest'
import {
  deadLinks,
  deadTests,
  documents,
  headlessTables,
  readDocument,
  unknownNames,
} from './names.ts'

for (const path of documents) {
  test(`the files, settings, metrics, log events, codes, keys and functions that ${path} names exist`, () => {
    assert.deepEqual(unknownNames(readDocument(path)), [])
  })

  test(`the commands of ${path} name tests that they run`, () => {
    assert.deepEqual(deadTests(readDocument(path)), [])
  })
}

for (const path of [...documents, 'CHANGELOG.md']) {
  test(`the links of ${path} lead to a file or heading`, () => {
    assert.deepEqual(deadLinks(path, readDocument(path)), [])
  })
}

test('each table of each document has a header', () => {
  const found = [...documents, 'CHANGELOG.md'].flatMap((path) =>
    headlessTables(readDocument(path)).map(() => path),
  )
  assert.deepEqual(found, [])
  assert.equal(headlessTables('A | B\n| --- | --- |\n| 1 | 2 |\n\n| one |\n| :-: |').length, 1)
})

test('a name or a link that does not exist is found', () => {
  const names = [
    'packages/queue/src/gone.ts',
    'packages/gone',
    'GONE_SECONDS',
    'sluice_gone_total',
    'job.gone',
    'gone_problem',
    'goneFunction',
    'gone:{id}',
  ]
  assert.deepEqual(unknownNames(names.map((name) => `\`${name}\``).join(' ')), names)
  const commands = ['pnpm@12 test names gone', 'pnpm@12 test mongodb-commands']
  assert.deepEqual(deadTests(commands.join('\n')), commands)
  assert.deepEqual(
    deadTests("pnpm@12 test docs/names -t 'a name' && pnpm@12 test:full metrics"),
    [],
  )
  assert.deepEqual(deadLinks('README.md', '[a](gone.md) [b](README.md#gone) [c](#gone)'), [
    'gone.md',
    'README.md#gone',
    '#gone',
  ])
})

test('the words of each part of the glossary are in alphabetical order', () => {
  const parts = readDocument('docs/glossary.md').split('\n## ')
  const words = parts.map((part) =>
    Array.from(part.matchAll(/^- \*\*([^*]+)\*\*/gm), ([, word = '']) => word),
  )
  assert.notEqual(words.flat().length, 0)
  for (const part of words) assert.deepEqual(part, part.toSorted())
})
