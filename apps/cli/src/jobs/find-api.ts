// Finds the API and the operator's key that `sluice jobs` uses.
import { readFile } from 'node:fs/promises'
import { instancePaths, NoInstance, readRunning } from '../start/instance.ts'
import { type AdminClient, AdminRequestError, createAdminClient } from './admin-client.ts'
import type { ApiOptions } from './jobs-command.ts'

/** The environment variable with an operator's key. */
const KEY_VARIABLE = 'SLUICE_API_KEY'

interface FindApiDeps {
  readonly folder: string
  readonly env: { readonly [KEY_VARIABLE]?: string | undefined }
}

/**
 * Opens a client: the API and the key that the options name, else those of the Sluice that runs in this folder. A key never comes from the command
 * line, where other users of the machine could read it. Throws NoInstance, and AdminRequestError if no key is known.
 */
export async function openAdminClient(
  { folder, env }: FindApiDeps,
  { url, keyFile }: ApiOptions,
): Promise<AdminClient> {
  const paths = instancePaths(folder)
  const named = keyFile === undefined ? env[KEY_VARIABLE] : await readKey(keyFile)
  if (url !== undefined) return createAdminClient(checkUrl(url), named || missingKey())
  const running = await readRunning(paths.running)
  if (running === undefined)
    throw new NoInstance(`No Sluice runs in ${folder}. Run \`start\` there, or name an API with --url.`)
  // The key of this folder goes to the API of this folder only.
  return createAdminClient(running.apiUrl, named || (await readKey(paths.operatorKey)))
}

function checkUrl(url: string): string {
  if (/^https?:$/.test(URL.parse(url)?.protocol ?? '')) return url
  throw new AdminRequestError('--url must begin with http:// or https://.')
}

function missingKey(): never {
  throw new AdminRequestError(
    `No key is known: put an operator's key into ${KEY_VARIABLE}, or name a file with --key-file.`,
  )
}

async function readKey(file: string): Promise<string> {
  const key = await readFile(file, 'utf8').catch((error) => {
    throw new AdminRequestError(`The key cannot be read: ${error instanceof Error ? error.message : error}`)
  })
  return key.trim() || missingKey()
}
