// Finds the rows of docs/promises.md that name no test that exists, and tests of promises that no
// row names.
import { files } from './names.ts'

const tests = new Set(files.filter((path) => path.endsWith('.test.ts')))

/** These folders test promises and nothing else. */
const PROMISES = /^test\/(attacks|faults|laws|overload|soak|upgrade)\//

const namedIn = (text: string) =>
  Array.from(text.matchAll(/`([^`]+\.test\.ts)`/g), ([, file = '']) => file)

/** The rows of tables with a column `test` that name no test, or one that does not exist. */
export function rowsWithoutTest(document: string): string[] {
  const tables = document
    .split(/\n(?!\|)/)
    .map((part) => part.split('\n').filter((line) => line.startsWith('|')))
  const rows = tables
    .filter(([head = '']) => /\| test \|/.test(head))
    .flatMap(([, , ...rows]) => rows)
  return rows.filter((row) => {
    const named = namedIn(row)
    return named.length === 0 || named.some((file) => !tests.has(file))
  })
}

/** The tests of promises that a document does not name. */
export function unnamedTests(document: string): string[] {
  const named = new Set(namedIn(document))
  return [...tests].filter((file) => PROMISES.test(file) && !named.has(file))
}
