export type Votes = { upVotes?: number; downVotes?: number; score?: number }

/**
 * The score to show: the one that was sent, else `upVotes` minus `downVotes` with a missing one as 0. Undefined where
 * neither is known, or where the difference is beyond a double's range.
 */
export function effectiveScore({ upVotes, downVotes, score }: Votes): number | undefined {
  if (score !== undefined) return score
  if (upVotes === undefined && downVotes === undefined) return undefined
  const difference = (upVotes ?? 0) - (downVotes ?? 0)
  return Number.isFinite(difference) ? difference : undefined
}
