import type { ProblemCode, ProblemMembers } from '@sluice/contract'

/** What a problem tells besides its kind. */
export type ProblemDetails = Omit<ProblemMembers, 'instance' | 'requestId'>

/** A call ends with this problem. The one place that knows HTTP statuses turns it into an answer. */
export class ProblemError extends Error {
  readonly code: ProblemCode
  readonly members: ProblemDetails
  readonly headers: Readonly<Record<string, string>>

  constructor(code: ProblemCode, members: ProblemDetails, headers: Readonly<Record<string, string>> = {}) {
    super(members.detail)
    this.name = 'ProblemError'
    this.code = code
    this.members = members
    this.headers = headers
  }
}
