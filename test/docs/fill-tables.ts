import { tables } from './tables.ts'

/** The documents that hold tables made from the code. */
export const documents = [
  'docs/settings.md',
  'docs/metrics.md',
  'docs/api.md',
  'docs/importing.md',
  'packages/importer/README.md',
]

/**
 * A document with each table between its marks (`<!-- table: name -->`, `<!-- end -->`) as the code
 * has it now. Throws where a mark names no table.
 */
export function fillTables(document: string): string {
  return document.replaceAll(/<!-- table: ([\w-]+) -->\n.*?<!-- end -->/gs, (_, name: string) => {
    const table = tables[name]
    if (table === undefined) throw new Error(`There is no table of the name ${name}`)
    return `<!-- table: ${name} -->\n\n${table()}\n\n<!-- end -->`
  })
}

/** The names of the tables that a document holds. */
export function tablesIn(document: string): string[] {
  return Array.from(document.matchAll(/<!-- table: ([\w-]+) -->/g), ([, name = '']) => name)
}
