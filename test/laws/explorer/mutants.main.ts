import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { mutants } from './mutants.ts'

// Removes each guard of the store in turn and shows that the explorer notices: `pnpm mutants [name…]`. Exits 1 if it does not notice one.

const RUNS = process.env.RUNS ?? '20000'
const path = (file: string) => fileURLToPath(new URL(file, import.meta.url))
const named = process.argv.slice(2)
const survivors: string[] = []

for (const { name, runs = RUNS } of mutants.filter(
  (mutant) => named.length === 0 || named.some((part) => mutant.name.includes(part)),
)) {
  const began = performance.now()
  const child = spawn(
    process.execPath,
    ['--import', path('mutate.ts'), path('main.ts'), '--no-shrink', '--runs', String(runs)],
    {
      env: { ...process.env, MUTANT: name },
      stdio: ['ignore', 'ignore', 'pipe'],
    },
  )
  let error = ''
  child.stderr.on('data', (chunk) => {
    error += chunk
  })
  const [code] = await once(child, 'close')
  const finding = /a law is broken by .*/.exec(error)?.[0]
  if (code !== 0 && finding === undefined) throw new Error(`${name}: the explorer did not run\n${error}`)
  if (finding === undefined) survivors.push(name)
  console.log(`${name}: ${finding ?? 'NOT NOTICED'}, ${((performance.now() - began) / 1000).toFixed(1)} s`)
}
console.log(`${survivors.length} guards of ${mutants.length} were removed without being noticed`)
if (survivors.length > 0) process.exitCode = 1
