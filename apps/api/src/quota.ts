// What a key's quota means in HTTP: the headers of an exceeded one, and what refused bytes are charged.
import type { RateLimitedError } from '@sluice/queue'

/** The name of a key's quota in the headers and in the problem. */
export const POLICY = 'quotes'

/**
 * The headers of draft-ietf-httpapi-ratelimit-headers-11, and Retry-After. A bucket that is refilled has no window; as its window counts the time in which
 * it is refilled. Quotes are no registered unit of the draft, so the unit has a parameter with a prefix.
 */
export function quotaHeaders({ quota, retryAfter }: RateLimitedError): Readonly<Record<string, string>> {
  const window = Math.max(1, Math.round(quota.burstQuotes / quota.quotesPerSecond))
  return {
    'retry-after': String(retryAfter),
    'ratelimit-policy': `"${POLICY}";q=${quota.burstQuotes};w=${window};sluice-unit="quotes"`,
    ratelimit: `"${POLICY}";r=0;t=${retryAfter}`,
  }
}

/** What a refused body or line is charged: one quote for each started kilobyte. */
export function quotesOf(refusedBytes: number): number {
  return Math.ceil(refusedBytes / 1_024)
}
