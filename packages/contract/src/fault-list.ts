import type { Fault } from './fault.ts'

/** As many faults as one answer lists; past that they are only counted. */
const LISTED_FAULTS = 50

export type FaultList = { errors: Fault[]; total: number }

/** Counts a fault, and makes it only while there is room to list it: a hostile body can hold millions. */
export function addFault(faults: FaultList, makeFault: () => Fault): void {
  faults.total += 1
  if (faults.errors.length < LISTED_FAULTS) faults.errors.push(makeFault())
}
