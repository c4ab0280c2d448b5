// The headers of a key's quota that is used up.
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
