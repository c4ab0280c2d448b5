import { execFileSync } from 'node:child_process'
import { readFile, writeFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { chartFiles } from './chart-files.ts'
import { documents, fillTables } from './fill-tables.ts'

// `pnpm run docs`: writes the tables that are made from the code into the documents, and files of the
// chart.
const root = new URL('../../', import.meta.url)
for (const name of documents) {
  const file = new URL(name, root)
  await writeFile(file, fillTables(await readFile(file, 'utf8')))
}
for (const [name, text] of Object.entries(chartFiles)) await writeFile(new URL(name, root), text())
const schemas = Object.keys(chartFiles).filter((name) => name.endsWith('.json'))
execFileSync('biome', ['format', '--write', ...schemas], {
  cwd: fileURLToPath(root),
  stdio: 'ignore',
})
