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
/** `docs/scaling.md` shows the figures of this scenario. */
const SHOWN_ELSEWHERE = 'bytes'

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
    ['```', ...aligned(rows).map((line) => line.trimEnd()), '```'].join('\n')
  return `# Results

Made by \`npx -y pnpm@12 bench --document\`: don't edit this page. [performance.md](../../docs/performance.md) describes the scenarios and contenders.
The JSON files beside this page have more of each result, and the SVG files are pictures.

Machines and versions:

${machinesOf(results)}

## Contenders

The medians of the rounds. CPU is µs for each thread: ${PROCESSES.join('/')}. Wrong answers: ${wrongAnswers(results)}.

${block(contendersOf(results, servers))}

## Figures and floors

\`*\` marks a floor that was missed. [scaling.md](../../docs/scaling.md#measured) has the figures of \`${SHOWN_ELSEWHERE}\`.

${block(figuresOf(results, servers))}

## Runs

${block(runsOf(results, servers))}
`
}

function machinesOf(results: readonly Result[]): string {
  const all = results.map(({ where }) => {
    const { cpu, cores, memoryGb, node, redis } = where
    return `- ${cpu}, ${cores} cores, ${memoryGb} GB; Node ${node}, ${redis}, ${describeMongodb(where)}`
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
      `${scenario}: ${contender}`,
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
  return [['scenario: contender', ...head], ...rows]
}

function figuresOf(results: readonly Result[], servers: readonly KindOfServer[]): string[][] {
  const shown = results.filter(({ name }) => name !== SHOWN_ELSEWHERE)
  const figures = namesOf(shown, ({ figures }) => figures.map(({ what }) => what)).map(
    ([scenario, what]) => {
      const found = servers.map((server) =>
        resultOf(shown, scenario, server)?.figures.find((one) => one.what === what),
      )
      const { unit = '' } = found.find((one) => one !== undefined) ?? {}
      return [`${scenario}: ${what}`, ...found.map((one) => (one ? digits(one.value) : '–')), unit]
    },
  )
  const floors = namesOf(shown, ({ floors }) => floors.map(({ what }) => what)).map(
    ([scenario, what]) => {
      const of = servers.map((server) => resultOf(shown, scenario, server))
      const found = of.map((result) => result?.floors.find((one) => one.what === what))
      const isJudged = of.map((result) => result?.scale.full === true)
      const cells = found.map((floor, at) =>
        floor ? `${digits(floor.value)}${missed(floor, isJudged[at])}` : '–',
      )
      const { is, bound = 0 } = found.find((one) => one !== undefined) ?? {}
      return [`${scenario}: ${what}`, ...cells, `${is === 'at least' ? '≥' : '≤'}${digits(bound)}`]
    },
  )
  return [['scenario: figure', ...servers.map(shortName), 'unit or floor'], ...figures, ...floors]
}

function missed({ reached }: Floor, isJudged = false): string {
  return isJudged && !reached ? '*' : ''
}

function runsOf(results: readonly Result[], servers: readonly KindOfServer[]): string[][] {
  const rows = namesOf(results, ({ scale }) => [String(scale.rounds)]).map(([scenario, rounds]) => [
    scenario,
    rounds,
    ...servers.map((server) => {
      const result = resultOf(results, scenario, server)
      return result === undefined ? '–' : `${result.at.slice(0, 10)} ${result.where.commit}`
    }),
  ])
  return [['scenario', 'rounds', ...servers.map(shortName)], ...rows]
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
