import { kindOfServer } from './describe-surroundings.ts'
import { figureLine, floorLine } from './format.ts'
import type { Result } from './result.ts'
import { aligned, tableOf } from './table.ts'

/** Prints a result for a terminal. */
export function printedResult({ measured, figures, floors, scale, where }: Result): string[] {
  const server = kindOfServer(where)
  return [
    ...(measured.length > 0 ? aligned(tableOf(measured, server)) : []),
    ...figures.map((figure) => figureLine(figure, server)),
    ...floors.map((floor) => floorLine(floor, scale.full, server)),
  ]
}
