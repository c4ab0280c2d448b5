// Adapts how many batches are in flight: more while that stores more a second, half when the service is busy.

/** The limits between which it adapts. 32 batches of a mebibyte are as much as one API replica queues for one tenant. */
const FIRST = 2
const MOST = 32
/** A round lasts this long, and until as many batches ended as may be in flight. */
const ROUND_MS = 400
/** More concurrency has to pay by this factor; the rates of two rounds differ by some percent anyway. */
const WORTH = 1.04
/** Rounds between two attempts to grow, after one that did not pay; it doubles with each such attempt. */
const REST_ROUNDS = 4
const MOST_REST_ROUNDS = 32

export interface AdaptiveConcurrency {
  /** How many batches may be in flight. */
  limit(): number
  /** A batch ended that stored this many quotes. `wasFull` says whether as many batches as allowed were in flight. */
  completed(work: number, wasFull: boolean): void
  /** The service refused a batch because it is busy. */
  throttled(): void
}

/**
 * The idea is that of Vector's adaptive request concurrency (additive increase, multiplicative decrease), measured by throughput: the time of one answer says
 * little, because the service queues what it accepts. It doubles at first, as TCP's slow start does, until that stops paying.
 *
 * @param now the time in milliseconds.
 */
export function createAdaptiveConcurrency(now: () => number = () => performance.now()): AdaptiveConcurrency {
  let limit = FIRST
  let isStarting = true
  let round = newRound()
  /** The last limit that paid, and its rate. */
  let known: { limit: number; rate: number } | undefined
  let rest = REST_ROUNDS
  let restLeft = 0
  let halvedAt = Number.NEGATIVE_INFINITY

  function newRound() {
    return { since: now(), work: 0, batches: 0, wasFull: true }
  }

  function judge(rate: number): void {
    if (known === undefined || limit < known.limit) {
      known = { limit, rate }
      if (restLeft === 0) grow()
    } else if (limit > known.limit) {
      if (rate > known.rate * WORTH) {
        known = { limit, rate }
        rest = REST_ROUNDS
        grow()
      } else retreat(known.limit)
    } else {
      known.rate = rate
      if (restLeft > 0) restLeft -= 1
      else grow()
    }
  }

  function grow(): void {
    limit = Math.min(MOST, isStarting ? limit * 2 : limit + Math.max(1, Math.floor(limit / 4)))
  }

  function retreat(to: number): void {
    limit = to
    // A step of a doubling was too large; a smaller one may still pay.
    restLeft = isStarting ? 0 : rest
    if (!isStarting) rest = Math.min(MOST_REST_ROUNDS, rest * 2)
    isStarting = false
  }

  return {
    limit: () => limit,
    completed(work, wasFull) {
      round.work += work
      round.batches += 1
      round.wasFull &&= wasFull
      const tookMs = now() - round.since
      if (tookMs < ROUND_MS || round.batches < limit) return
      // While the input is slower than the service, the rate says nothing about the limit.
      if (round.wasFull) judge(round.work / tookMs)
      round = newRound()
    },
    throttled() {
      // Batches that were in flight together are refused together: that is one sign, not many.
      if (now() - halvedAt < ROUND_MS) return
      halvedAt = now()
      limit = Math.max(1, Math.floor(limit / 2))
      isStarting = false
      known = undefined
      restLeft = REST_ROUNDS
      round = newRound()
    },
  }
}
