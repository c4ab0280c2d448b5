// Runs Sluice under random faults: `pnpm soak --minutes 10 [--seed N]`. Exits 1, with the seed, the faults and the difference, if a promise does not hold.
import { randomInt } from 'node:crypto'
import { parseArgs } from 'node:util'
import { openScope } from './open-scope.ts'
import { runSoak, type SoakReport } from './run-soak.ts'
import { describeFault, makeSchedule } from './schedule.ts'

const SHOWN = 20

const { values } = parseArgs({ options: { minutes: { type: 'string' }, seed: { type: 'string' } } })
const seed = Number(values.seed ?? randomInt(2 ** 32))
const seconds = Number(values.minutes ?? 2) * 60
const faults = makeSchedule(seed, seconds)

console.log(`seed ${seed}, ${seconds} s, ${faults.length} faults`)
const scope = openScope('soak')
let holds = false
try {
  const report = await runSoak(scope, { seed, seconds, faults }, console.log)
  holds = isClean(report)
  print(report)
} catch (error) {
  console.error(error)
} finally {
  await scope.end(holds)
}
if (!holds) {
  console.log(`Failed. To run the same faults again: pnpm soak --minutes ${seconds / 60} --seed ${seed}`)
  for (const fault of faults) console.log(describeFault(fault))
}
process.exitCode = holds ? 0 : 1

function isClean({ differences, failedJobs, violations }: SoakReport): boolean {
  return failedJobs === 0 && violations.length === 0 && Object.values(differences).every((names) => names.length === 0)
}

function print({ posted, differences, failedJobs, violations }: SoakReport): void {
  const kinds = Map.groupBy(posted, ({ status, body }) => `${status} ${body.code ?? ''}`.trim())
  console.log([`${posted.length} posts`, ...Array.from(kinds, ([kind, of]) => `${of.length} × ${kind}`)].join(', '))
  for (const [kind, names] of [...Object.entries(differences), ['violations', violations]] as const) {
    console.log(`${kind}: ${names.length}`)
    for (const name of names.slice(0, SHOWN)) console.log(`  ${name}`)
  }
  console.log(`failed jobs: ${failedJobs}`)
}
