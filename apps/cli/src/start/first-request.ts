// Prepares a user's first request: an API key, and a command to paste.
import { readFile, writeFile } from 'node:fs/promises'
import type { StoreConnection } from '@sluice/store'
import { createKey, createKeyring, keyAccess } from '@sluice/store/keys'

/**
 * The key of this folder, in a file that only its owner can read. Creates it at the first start, and again where the
 * database does not know it (another database, or a revoked key). Closes the connection.
 */
export async function localKey(file: string, store: StoreConnection): Promise<string> {
  const keyring = createKeyring(keyAccess(store.db))
  try {
    const stored = await readFile(file, 'utf8').catch(() => '')
    const { outcome } = await keyring.find(stored.trim())
    if (outcome === 'known') return stored.trim()
    const { key } = await createKey(store.db, { tenant: 'local', name: 'first key' })
    await writeFile(file, `${key}\n`, { mode: 0o600 })
    return key
  } finally {
    await keyring.close()
    await store.close()
  }
}

const thread = {
  title: 'Dark mode, please',
  externalId: 'thread-1',
  service: 'slack',
  quotes: [
    { externalId: 'message-1', speaker: 'Ada', text: 'Could the editor have a dark mode?' },
    { externalId: 'message-2', speaker: 'Grace', text: 'It would help at night.', replyingTo: 'message-1' },
  ],
}

/** A command that posts a small thread, to paste into a shell. */
export function pasteableCurl(apiUrl: string, key: string): string {
  const headers = [`x-api-key: ${key}`, 'content-type: application/json'].map((header) => `-H '${header}'`)
  return `curl -sS ${apiUrl}/sources ${headers.join(' ')} -d '${JSON.stringify(thread)}'`
}
