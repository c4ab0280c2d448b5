import { scenarios } from '../scenarios/choose.ts'
import { describeMongodb, kindOfServer } from './describe-surroundings.ts'
import { figureLine, floorLine } from './format.ts'
import type { Result } from './result.ts'
import { fileNameOf } from './results.ts'
import { markdownTable, tableOf } from './table.ts'

const MARKS = /(<!-- results -->\n).*?(<!-- end -->)/s

/** A document with the section between its marks (`<!-- results -->`, `<!-- end -->`) generated from these results. */
export function fillResults(document: string, results: readonly Result[]): string {
  return document.replace(MARKS, (_, start: string, end: string) => `${start}\n${sectionOf(results)}\n\n${end}`)
}

function sectionOf(results: readonly Result[]): string {
  const sections = scenarios.flatMap(({ name }) => results.filter((result) => result.name === name)).map(sectionFor)
  return sections.length > 0 ? sections.join('\n\n') : '`bench/results` holds no results.'
}

function sectionFor(result: Result): string {
  const { name, title, measured, figures, floors, scale, where } = result
  const server = kindOfServer(where)
  return [
    `### \`${name}\` (${server}): ${title}`,
    whereOf(result),
    ...(measured.length > 0
      ? [`![${title}](../bench/results/${fileNameOf(result)}.svg)`, markdownTable(tableOf(measured, server))]
      : []),
    ...(figures.length > 0 ? [figures.map((figure) => `- ${figureLine(figure, server)}`).join('\n')] : []),
    ...(floors.length > 0 ? [floors.map((floor) => `- **${floorLine(floor, scale.full, server)}**`).join('\n')] : []),
  ].join('\n\n')
}

function whereOf({ at, where, scale }: Result): string {
  const { cpu, cores, memoryGb, node, redis, commit } = where
  return `${at.slice(0, 10)}, commit ${commit}, ${scale.rounds} rounds; ${cpu}, ${cores} cores, ${memoryGb} GB; Node ${node}, ${redis}, ${describeMongodb(where)}.`
}
