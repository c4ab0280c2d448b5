import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { NODE_FLAGS } from '@sluice/local'
import { test } from 'vitest'
import { chartFiles } from './chart-files.ts'
import { documents, fillTables, tablesIn } from './fill-tables.ts'
import { tables } from './tables.ts'

const read = (name: string) => readFile(new URL(`../../${name}`, import.meta.url), 'utf8')

for (const name of documents) {
  test(`the tables in ${name} agree with the code; if not, run \`pnpm run docs\``, async () => {
    const document = await read(name)
    assert.equal(document, fillTables(document))
  })
}

for (const [name, text] of Object.entries(chartFiles)) {
  test(`${name} agrees with the code and with docs/monitoring; if not, run \`pnpm run docs\``, async () => {
    const [written, made] = [await read(name), text()]
    if (name.endsWith('.json')) assert.deepEqual(JSON.parse(written), JSON.parse(made))
    else assert.equal(written, made)
  })
}

test('docs/importing.md runs no TypeScript with a Node that may refuse it', async () => {
  assert.doesNotMatch(await read('docs/importing.md'), /(?<!node_modules\/\.bin\/)node [\w./]+\.ts/)
})

test('some document has each table', async () => {
  const found = (await Promise.all(documents.map(read))).flatMap(tablesIn)
  assert.deepEqual([...new Set(found)].sort(), Object.keys(tables).sort())
})

test('the picture in README.md is a PNG of at most 200 kB', async () => {
  const picture = await readFile(new URL('../../docs/dashboard.png', import.meta.url))
  assert.deepEqual([picture.subarray(1, 4).toString(), picture.length <= 200_000], ['PNG', true])
})

test('containers start APIs and workers with the flags of `start`', async () => {
  const flags = NODE_FLAGS.join(', ')
  const compose = await read('docker-compose.yml')
  for (const app of ['api', 'worker'])
    assert.ok(compose.includes(`command: [node, ${flags}, apps/${app}/src/main.ts]`))
  const command = JSON.stringify(['node', ...NODE_FLAGS, 'apps/api/src/main.ts']).replaceAll(
    ',',
    ', ',
  )
  assert.ok((await read('Dockerfile')).includes(`CMD ${command}`))
})
