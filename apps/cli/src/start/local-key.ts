import { readFile, writeFile } from 'node:fs/promises'
import type { StoreConnection } from '@sluice/store'
import { createKey, createKeyring, keyAccess } from '@sluice/store/keys'

/**
 * The key of this folder: made at the first start, kept in a file that only its owner reads, and made anew where the database does not know it
 * (another server, or revoked). Closes the connection.
 */
export async function localKey(file: string, store: StoreConnection): Promise<string> {
  const keyring = createKeyring(keyAccess(store.db))
  try {
    const kept = await readFile(file, 'utf8').catch(() => '')
    const { outcome } = await keyring.find(kept.trim())
    if (outcome === 'known') return kept.trim()
    const { key } = await createKey(store.db, { tenant: 'local', name: 'first key' })
    await writeFile(file, `${key}\n`, { mode: 0o600 })
    return key
  } finally {
    await keyring.close()
    await store.close()
  }
}
