import type { IncomingMessage } from 'node:http'
import type { Keyring } from '@sluice/store/keys'
import { ProblemError } from './problem-error.ts'

/** Finds out whose key a request carries, before a byte of its body is read. */
export async function authenticate(
  keyring: Keyring,
  request: IncomingMessage,
): Promise<{ tenant: string; keyId: string }> {
  const header = request.headers['x-api-key']
  const verdict = await keyring.find(typeof header === 'string' ? header : undefined)
  if (verdict.outcome === 'known') return verdict
  if (verdict.outcome === 'unavailable') {
    const detail = 'The key can not be checked right now. Try again in a moment.'
    throw new ProblemError('keys_unavailable', { detail }, { 'retry-after': '2' })
  }
  const detail = header === undefined ? 'The header x-api-key is missing.' : 'The key in x-api-key is not valid.'
  throw new ProblemError('api_key_invalid', { detail })
}
