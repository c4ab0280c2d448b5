import assert from 'node:assert/strict'
import { describe, it } from 'vitest'
import { effectiveScore, type Votes } from './effective-score.ts'

const cases: [rule: string, votes: Votes, score: number | undefined][] = [
  ['the one that was sent', { upVotes: 5, downVotes: 2, score: 9 }, 9],
  ['the one that was sent, also where it is 0', { upVotes: 5, score: 0 }, 0],
  ['upVotes minus downVotes', { upVotes: 5, downVotes: 2 }, 3],
  ['upVotes where downVotes are missing', { upVotes: 5 }, 5],
  ['0 minus downVotes where upVotes are missing', { downVotes: 2 }, -2],
  ['nothing where neither is known', {}, undefined],
  ['nothing where it would overflow', { upVotes: Number.MAX_VALUE, downVotes: -Number.MAX_VALUE }, undefined],
]

describe('the score is', () => {
  for (const [rule, votes, score] of cases) it(rule, () => assert.equal(effectiveScore(votes), score))
})
