import { readFile, writeFile } from 'node:fs/promises'
import { documents, fillTables } from './fill-tables.ts'

// `pnpm run docs`: writes the tables that are made from the code into the documents.
for (const name of documents) {
  const file = new URL(`../../${name}`, import.meta.url)
  await writeFile(file, fillTables(await readFile(file, 'utf8')))
}
