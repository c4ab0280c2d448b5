// What is wrong with the keys of callers.
import type { RefusedKeyCount, SeenProcess } from '@sluice/contract'
import { alive, duration, type Facts, type Findings, finding, shown } from './finding.ts'

/** Sums up what all APIs refused. */
function refusedKeysOf(processes: readonly SeenProcess[]): RefusedKeyCount[] {
  const sums = new Map<string, RefusedKeyCount>()
  for (const one of alive(processes, 'api').flatMap(({ refusedKeys = [] }) => refusedKeys)) {
    const name = `${one.why} ${one.keyId}`
    const { requests = 0, lastMsAgo = Infinity } = sums.get(name) ?? {}
    const sum = { requests: requests + one.requests, lastMsAgo: Math.min(lastMsAgo, one.lastMsAgo) }
    sums.set(name, { ...one, ...sum })
  }
  return [...sums.values()]
}

/** The verdict names this number of keys that expire soon. */
const NAMED_KEYS = 3

/** Judges the keys of callers: those that expire soon, and those that work no more, and are still used. */
export function* judgeKeys({ processes, expiringKeys = [], at }: Facts): Findings {
  const named = expiringKeys.slice(0, NAMED_KEYS).map(({ keyId, tenant, name, expiresAt }) => {
    const left = duration(Date.parse(expiresAt) - Date.parse(at))
    return `${name}${tenant && ` of ${tenant}`} (${keyId}) in ${left}`
  })
  const others = expiringKeys.length - named.length
  const list = [...named, ...(others > 0 ? [`${shown(others)} more`] : [])].join(', ')
  const subject = expiringKeys.length === 1 ? '1 key expires' : `${shown(expiringKeys.length)} keys expire`
  if (named.length > 0) yield finding('keys_expire', `${subject} within a week: ${list}; rotate them`)
  const refusedKeys = refusedKeysOf(processes)
  const gone = refusedKeys.filter(({ why }) => why === 'gone').map(({ keyId, tenant }) => `${keyId} of ${tenant}`)
  const some = gone.slice(0, NAMED_KEYS).join(', ') + (gone.length > NAMED_KEYS ? ' …' : '')
  const lost = `Keys that worked are no longer in MongoDB: ${some}; restore the collection \`keys\``
  if (gone.length > 0) yield finding('keys_gone', lost)
  for (const { keyId, tenant, why, requests, lastMsAgo } of refusedKeys) {
    // A caller with the key of another role sees its mistake at once.
    if (why === 'role') continue
    const key = `The key ${keyId}${tenant && ` of ${tenant}`}`
    const times = requests === 1 ? '1 request' : `${shown(requests)} requests`
    const refused = `${times} refused, the last one ${duration(lastMsAgo)} ago`
    const page = tenant === '' ? undefined : `/tenants/${encodeURIComponent(tenant)}`
    const expired = `${key} has expired, and is still used: ${refused}; create another one for its caller, or revoke it`
    if (why === 'expired') yield finding('key_expired', expired, page)
    if (why === 'revoked') yield finding('key_revoked', `${key} is revoked, and is still used: ${refused}`, page)
  }
}
