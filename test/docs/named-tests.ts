// Finds the tests that a document's tables name, as `file`: title, and those of them that do not exist.
import { existsSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('../../', import.meta.url))

/** A test that a document names. `…` in its title stands for any text. */
export interface NamedTest {
  file: string
  title: string
}

const NAMED = /`([\w./-]+\.test\.ts)`: ([^|`]+?)(?=<br>| \|)/g

/** All tests that the rows of a document's tables name. */
export function namedTests(document: string): NamedTest[] {
  const rows = document.split('\n').filter((line) => line.startsWith('|'))
  return rows.flatMap((row) => Array.from(row.matchAll(NAMED), ([, file = '', title = '']) => ({ file, title })))
}

/** The rows of tables with a column `test` that name no test. */
export function rowsWithoutTest(document: string): string[] {
  const tables = document.split(/\n(?!\|)/).map((part) => part.split('\n').filter((line) => line.startsWith('|')))
  return tables
    .filter(([head = '']) => /\| test \|/.test(head))
    .flatMap(([, , ...rows]) => rows.filter((row) => namedTests(row).length === 0))
}

/** Whether the file has a test of this title. */
export function exists({ file, title }: NamedTest): boolean {
  if (!existsSync(root + file)) return false
  // As written in the source: a quote in a title may be escaped.
  const source = readFileSync(root + file, 'utf8').replaceAll("\\'", "'")
  return title.split('…').every((part) => source.includes(part.trim()))
}
