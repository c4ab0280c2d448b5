// Counts the requests that were refused because of their key: by reason in a metric, and by key for operators.
import type { RefusedKeyCount } from '@sluice/contract'
import type { KnownKey, RefusedKey } from '@sluice/credentials/keys'
import type { ApiMetrics } from './metrics.ts'

/** Operators see a key for this time after its last refusal, and the keys with the most refusals. */
const SHOWN_MS = 5 * 60_000
const SHOWN_KEYS = 10
/** While this number of keys is shown, no further key is counted. */
const MOST_KEYS = 1_000

/** Keys are unbounded, and labels must not be, so the metric has no label for the key. */
export function countRefusedKeys({ keysRefused }: Pick<ApiMetrics, 'keysRefused'>, now = () => performance.now()) {
  const byKey = new Map<string, Omit<RefusedKeyCount, 'lastMsAgo'> & { lastAt: number }>()
  return {
    /** @param key was refused because of its role if it is known; undefined if the header was missing. */
    note(key: KnownKey | RefusedKey | undefined): void {
      const why = key?.outcome === 'known' ? 'role' : (key?.why ?? 'unknown')
      keysRefused.inc({ why })
      const { keyId, tenant = '' } = key ?? {}
      if (keyId === undefined || why === 'unknown') return
      if (byKey.size >= MOST_KEYS && !byKey.has(keyId)) return
      const requests = (byKey.get(keyId)?.requests ?? 0) + 1
      byKey.set(keyId, { keyId, tenant, why, requests, lastAt: now() })
    },
    /** Lists the keys that were refused lately, those with the most refusals first. */
    list(): RefusedKeyCount[] {
      for (const [keyId, { lastAt }] of byKey) if (now() - lastAt > SHOWN_MS) byKey.delete(keyId)
      const counts = [...byKey.values()].sort((one, other) => other.requests - one.requests)
      return counts.slice(0, SHOWN_KEYS).map(({ lastAt, ...count }) => ({ ...count, lastMsAgo: now() - lastAt }))
    },
  }
}
