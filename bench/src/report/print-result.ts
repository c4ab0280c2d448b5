import { figureLine, floorLine } from './format.ts'
import type { Result } from './result.ts'
import { aligned, tableOf } from './table.ts'

/** Prints a result for a terminal. */
export function printedResult({ measured, figures, floors, scale }: Result): string[] {
  return [
    ...(measured.length > 0 ? aligned(tableOf(measured)) : []),
    ...figures.map(figureLine),
    ...floors.map((floor) => floorLine(floor, scale.full)),
  ]
}
