// The documents that show the stored results: a table in docs/performance.md, and
// bench/results/README.md.
import { scenarios } from '../scenarios/choose.ts'
import type { Floor } from '../scenarios/scenario.ts'
import { describeMongodb, type KindOfServer, kindOfServer } from './describe-surroundings.ts'
import { digits } from './format.ts'
import type { Result } from './result.ts'
import { aligned, markdownTable } from './table.ts'

const MARKS = /(<!-- results -->\n).*?(<!-- end -->)/s
const SERVERS: readonly KindOfServer[] = ['MongoDB', 'emulator on disk', 'emulator in memory']
/** The scenarios that decide, and the contenders in them. */
const DECIDING = ['callers-64', 'callers-1', 'import']
const CONTENDERS = ['sluice', 'sluice-start', 'textbook', 'upserts', 'bulk-write', 'raw']
/** The processes whose CPU time the results show, in this order. */
const PROCESSES = ['api', 'worker', 'redis', 'mongodb', 'load']

/** `docs/performance.md` with the table between its marks made from these results. */
export function fillResults(document: string, results: readonly Result[]): string {
  return document.replace(
    MARKS,
    (_, start: string, end: string) => `${start}\n${decidingTable(results)}\n\n${end}`,
  )
}

function decidingTable(results: readonly Result[]): string {
  const rows = DECIDING.flatMap((name) =>
    SERVERS.flatMap((server) => {
      const result = resultOf(results, name, server)
      return result === undefined
        ? []
        : [[`\`${name}\`, ${server}`, ...CONTENDERS.map((one) => rateOf(result, one))]]
    }),
  )
  return markdownTable([
    ['threads/s (p99 in ms)', ...CONTENDERS.map((name) => `\`${name}\``)],
    ...rows,
  ])
}

function rateOf({ measured }: Result, contender: string): string {
  const median = measured.find(({ name }) => name === contender)?.median
  return median === undefined ? '–' : `${digits(median.rate)} (${digits(median.p99)})`
}

/** The text of `bench/results/README.md`. */
export function resultsDocument(results: readonly Result[]): string {
  const servers = SERVERS.filter((server) =>
    results.some(({ where }) => kindOfServer(where) === server),
  )
  const block = (rows: readonly string[][]) =>
    ['```', ...aligned(rows, 2).map((line) => line.trimEnd()), '```'].join('\n')
  return `# Results

Made by \`npx -y pnpm@12 bench --document\`: don't edit this page. [performance.md](../../docs/performance.md#what-is-measured) describes scenarios
and contenders. The JSON files name libraries and commits.

${runsOf(results)}

## Contenders

Medians. CPU is µs for each thread: ${PROCESSES.join('/')}. Wrong answers: ${wrongAnswers(results)}.

${block(contendersOf(results, servers))}

## Figures and floors

\`*\` marks a missed floor.

${block(figuresOf(results, servers))}
`
}

/** The days, machines and versions of the runs. */
function runsOf(results: readonly Result[]): string {
  const all = results.map(({ at, scale, where }) => {
    const { cpu, cores, memoryGb, node, redis } = where
    const machine = `${cpu}, ${cores} cores, ${memoryGb} GB`
    const versions = `Node ${node}, ${redis}, ${describeMongodb(where)}`
    return `- ${at.slice(0, 10)}, ${scale.rounds} rounds: ${machine}; ${versions}`
  })
  return [...new Set(all)].sort().join('\n')
}

function wrongAnswers(results: readonly Result[]): string {
  const wrong = results.flatMap(({ name, measured }) =>
    measured.flatMap((one) =>
      one.median.failed > 0 ? [`${name} ${one.name} ${one.median.failed}`] : [],
    ),
  )
  return wrong.join(', ') || 'none'
}

function contendersOf(results: readonly Result[], servers: readonly KindOfServer[]): string[][] {
  const head = servers.flatMap((server) => [`${shortName(server)}: threads/s`, 'p50/p99 ms', 'CPU'])
  const rows = namesOf(results, ({ measured }) => measured.map(({ name }) => name)).map(
    ([scenario, contender]) => [
      scenario,
      contender,
      ...servers.flatMap((server) => {
        const { measured = [] } = resultOf(results, scenario, server) ?? {}
        const median = measured.find(({ name }) => name === contender)?.median
        if (median === undefined) return ['–', '–', '–']
        const cpu = PROCESSES.map((name) =>
          median.cpuUs[name] === undefined ? '–' : Math.round(median.cpuUs[name]),
        )
        return [digits(median.rate), `${digits(median.p50)}/${digits(median.p99)}`, cpu.join('/')]
      }),
    ],
  )
  return [['scenario', 'contender', ...head], ...grouped(rows)]
}

function figuresOf(results: readonly Result[], servers: readonly KindOfServer[]): string[][] {
  const figures = namesOf(results, ({ figures }) => figures.map(({ what }) => what)).map(
    ([scenario, what]) => {
      const found = servers.map((server) =>
        resultOf(results, scenario, server)?.figures.find((one) => one.what === what),
      )
      const { unit = '' } = found.find((one) => one !== undefined) ?? {}
      return [scenario, what, ...found.map((one) => (one ? digits(one.value) : '–')), unit]
    },
  )
  const floors = namesOf(results, ({ floors }) => floors.map(({ what }) => what)).map(
    ([scenario, what]) => {
      const of = servers.map((server) => resultOf(results, scenario, server))
      const found = of.map((result) => result?.floors.find((one) => one.what === what))
      const isJudged = of.map((result) => result?.scale.full === true)
      const cells = found.map((floor, at) =>
        floor ? `${digits(floor.value)}${missed(floor, isJudged[at])}` : '–',
      )
      const { is, bound = 0 } = found.find((one) => one !== undefined) ?? {}
      return [scenario, what, ...cells, `${is === 'at least' ? '≥' : '≤'}${digits(bound)}`]
    },
  )
  const head = ['scenario', 'figure', ...servers.map(shortName), 'unit or floor']
  return [head, ...grouped(figures), ...grouped(floors)]
}

function missed({ reached }: Floor, isJudged = false): string {
  return isJudged && !reached ? '*' : ''
}

/** Rows that name their scenario only where it changes. */
function grouped(rows: readonly string[][]): string[][] {
  return rows.map(([scenario = '', ...cells], at) => [
    scenario === rows[at - 1]?.[0] ? '' : scenario,
    ...cells,
  ])
}

/**
 * Returns the pairs of a scenario and each name that its results have, in the order of the
 * scenarios.
 */
function namesOf(
  results: readonly Result[],
  names: (result: Result) => readonly string[],
): [string, string][] {
  return scenarios.flatMap(({ name: scenario }) => {
    const all = results.filter(({ name }) => name === scenario).flatMap(names)
    return Array.from(new Set(all), (name): [string, string] => [scenario, name])
  })
}

function resultOf(
  results: readonly Result[],
  name: string,
  server: KindOfServer,
): Result | undefined {
  return results.find((result) => result.name === name && kindOfServer(result.where) === server)
}

function shortName(server: KindOfServer): string {
  return server.replace('emulator ', '')
}
