// Prepares a user's first requests: the API keys of this folder, and a command to paste.
import { readFile, writeFile } from 'node:fs/promises'
import type { StoreConnection } from '@sluice/store'
import { createKey, createKeyring, keyAccess, type NewKey } from '@sluice/store/keys'

/** The keys of this folder: one that posts, and one that handles failed jobs. */
interface LocalKeys {
  readonly key: string
  readonly operatorKey: string
}

/**
 * The keys of this folder, in files that only their owner can read. Creates each at the first start, and again where the
 * database does not know it (another database, or a revoked key). Closes the connection.
 */
export async function localKeys(files: LocalKeys, store: StoreConnection): Promise<LocalKeys> {
  const keyring = createKeyring(keyAccess(store.db))
  async function localKey(file: string, create: () => Promise<NewKey>): Promise<string> {
    const stored = await readFile(file, 'utf8').catch(() => '')
    const { outcome } = await keyring.find(stored.trim())
    if (outcome === 'known') return stored.trim()
    const { key } = await create()
    await writeFile(file, `${key}\n`, { mode: 0o600 })
    return key
  }
  try {
    // Several folders can use one database, and each may lose its file.
    const at = new Date().toISOString()
    const key = await localKey(files.key, () => createKey(store.db, { tenant: 'local', name: `first key, ${at}` }))
    const operator = { role: 'operator', name: `operator of start, ${at}` } as const
    return { key, operatorKey: await localKey(files.operatorKey, () => createKey(store.db, operator)) }
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
