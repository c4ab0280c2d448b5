// Removes quoted values from the reason of a failure: to group failures, and for viewers.
import type { FailedJob, FailedJobGroups, FailedJobPage, Found, Operation } from '@sluice/contract'

/** The most characters of a reason that is shown: a reason may quote a whole document. */
export const SHOWN_REASON = 2_000

const VARIES = '…'
/** Matches names in JSON and MongoDB's rules (captured), quoted texts (also cut ones), and words with parts of ids. */
const QUOTED_OR_WORD =
  /((?<=[{,])"[$\w.]+"(?=:)|(?<="(?:operator|property)Name":)"[$\w.]+")|"(?:[^"\\]|\\[\s\S])*(?:"|\\?$)|(?<!\w)'[^']*(?:'|$)|`[^`]*(?:`|$)|[\w.:/-]+/g
/** Names the failed thread of a job of several. A job of one thread fails by the same cause without this beginning. */
const THREAD = /^threads\[\d+\] "(?:[^"\\]|\\[\s\S])*": /
/** Codes of errors, such as `E11000`. */
const ERROR_CODE = /^[A-Z]{1,3}\d{1,6}$/

/** Returns a reason without its thread's name, quoted texts, numbers and ids: equal for failures of one cause. */
export function reasonGroupOf(reason: string): string {
  return reason
    .replace(THREAD, '')
    .slice(0, SHOWN_REASON)
    .replace(QUOTED_OR_WORD, (found, name?: string) => {
      const isSame = /^[\w.:/-]/.test(found) && (!/\d/.test(found) || ERROR_CODE.test(found))
      return name || isSame ? found : VARIES
    })
}

/** Returns the longest text that every reason of the group contains. */
export function longestPieceOf(group: string): string {
  return group.split(VARIES).reduce((longest, piece) => (piece.length > longest.length ? piece : longest))
}

const masked = <Found extends { reason: string }>(found: Found): Found => ({
  ...found,
  reason: reasonGroupOf(found.reason),
})

/** Reduces what operators see to what viewers see: ids, and reasons without values. Payloads and stacks may quote. */
export const asViewersSee = {
  page: (page: FailedJobPage): FailedJobPage => ({ ...page, jobs: page.jobs.map(masked) }),
  groups: ({ groups, isComplete }: FailedJobGroups): FailedJobGroups => ({ groups: groups.map(masked), isComplete }),
  job: (job: FailedJob): FailedJob => ({
    ...masked(job),
    tries: job.tries.map(masked),
    failedThreads: job.failedThreads.map(masked),
    stack: [],
    payload: null,
  }),
  found: (found: Found): Found => ({
    ...found,
    hits: found.hits.map((hit) => (hit.reason === undefined ? hit : { ...hit, reason: reasonGroupOf(hit.reason) })),
  }),
  operation: (operation: Operation): Operation =>
    operation.filter?.reason === undefined
      ? operation
      : { ...operation, filter: { ...operation.filter, reason: VARIES } },
}
