import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { Mutant } from './mutant.ts'
import { mutants } from './mutants.ts'

// Removes each guard of the store in turn and shows that the explorer notices: `pnpm mutants
// [name…]`. Exits 1 if it does not notice one.

const RUNS = Number(process.env.RUNS ?? 20_000)
const path = (file: string) => fileURLToPath(new URL(file, import.meta.url))
const named = process.argv.slice(2)
const survivors: string[] = []

/** The program that is to notice a mutant. */
function commandFor({ isKnown, runs = RUNS }: Mutant): [file: string, args: string[]] {
  if (isKnown)
    return [
      'vitest',
      ['run', 'test/laws/known-histories', 'test/laws/repeats', 'test/laws/deletions'],
    ]
  return [process.execPath, [path('main.ts'), '--no-shrink', '--runs', String(runs)]]
}

const chosen = mutants.filter(
  ({ name }) => named.length === 0 || named.some((part) => name.includes(part)),
)
for (const mutant of chosen) {
  const { name } = mutant
  const began = performance.now()
  const env = {
    ...process.env,
    MUTANT: name,
    NODE_OPTIONS: `--import ${path('mutate.ts')}`,
    NO_COLOR: '1',
  }
  const child = spawn(...commandFor(mutant), { env, stdio: ['ignore', 'ignore', 'pipe'] })
  let error = ''
  child.stderr.on('data', (chunk) => {
    error += chunk
  })
  const [code] = await once(child, 'close')
  const finding = /a law is broken by .*|AssertionError: .*/.exec(error)?.[0]
  if (code !== 0 && finding === undefined)
    throw new Error(`${name}: the explorer did not run\n${error}`)
  if (finding === undefined) survivors.push(name)
  console.log(
    `${name}: ${finding ?? 'NOT NOTICED'}, ${((performance.now() - began) / 1000).toFixed(1)} s`,
  )
}
console.log(`${survivors.length} guards of ${chosen.length} were removed without being noticed`)
if (survivors.length > 0) process.exitCode = 1
