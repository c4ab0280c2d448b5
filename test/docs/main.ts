import { readFile, writeFile } from 'node:fs/promises'
import { CLIENT_TYPES, clientTypes } from './client-types.ts'
import { documents, fillTables } from './fill-tables.ts'

// `pnpm run docs`: writes the tables that are made from the code into the documents, and the client's types.
for (const name of documents) {
  const file = new URL(`../../${name}`, import.meta.url)
  await writeFile(file, fillTables(await readFile(file, 'utf8')))
}
await writeFile(new URL(`../../${CLIENT_TYPES}`, import.meta.url), clientTypes())
