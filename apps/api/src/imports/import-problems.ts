// Keeps the first problems of an import, for its progress.
import { PROBLEMS_KEPT, type Problem } from '@sluice/contract'
import type { ImportProblem } from '@sluice/queue'
import type { RefusedItem } from './group-items.ts'

/** The bounds of what Redis keeps of an import's problems: their bytes in total, and the faults of one item. */
const PROBLEM_BYTES_KEPT = 1024 * 1024
const FAULTS_KEPT = 5

/** An item with such a problem was not taken in, or not surely. Its caller may post it again. */
const TURNED_AWAY = /"status":(?:408|429|503|504)|"code":"body_unreadable"/

/** Keeps the first problems of an import, and counts the items that were turned away. */
export function createProblems() {
  const kept: ImportProblem[] = []
  let bytes = 0
  const problems = {
    kept,
    turnedAway: 0,
    keep({ result }: RefusedItem): void {
      if (TURNED_AWAY.test(result)) {
        problems.turnedAway += 1
        return
      }
      if (bytes > PROBLEM_BYTES_KEPT || kept.length === PROBLEMS_KEPT) return
      const { index, line, externalId, problem } = JSON.parse(result)
      const { code, jobId } = problem
      const item: ImportProblem = { index, line, externalId }
      if (code === 'job_failed' && jobId !== undefined) item.jobId = jobId
      else item.refused = shorten(problem)
      bytes += Buffer.byteLength(JSON.stringify(item))
      if (bytes <= PROBLEM_BYTES_KEPT) kept.push(item)
    },
  }
  return problems
}

/** Returns the problem with its first few faults. Its `total` counts all faults. */
function shorten(problem: Problem): Problem {
  return problem.errors === undefined ? problem : { ...problem, errors: problem.errors.slice(0, FAULTS_KEPT) }
}
