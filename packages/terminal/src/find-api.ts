// Finds the API that a command uses, and the key for it.
import { readFile } from 'node:fs/promises'
import type { Command } from 'commander'
import { instancePaths, noSluiceIn, readRunning, withRunning } from './instance.ts'
import { UserError } from './run-program.ts'

export interface FindApiDeps {
  readonly folder: string
  readonly env: { readonly [name in 'SLUICE_API_KEY' | 'DASHBOARD_URL']?: string | undefined }
}

export interface ApiOptions {
  url?: string | undefined
  keyFile?: string | undefined
}

export interface Target {
  url: string
  apiKey: string
}

export type KeyHolder = 'importer' | 'operator'

/** Adds the options that name an API and a key. */
export function apiOptions(command: Command, holder: KeyHolder): Command {
  return command
    .option(
      '--url <url>',
      "the API (default: of the Sluice that `start` runs in this folder, or in the program's folder)",
    )
    .option(
      '--key-file <path>',
      `a file with an ${holder}'s key (default: SLUICE_API_KEY; without --url, then the key of the same Sluice)`,
    )
}

/**
 * Finds the API that the options name, or the API of the Sluice that runs in the folder. Reads the
 * key from the key file, from SLUICE_API_KEY or, without --url, from the folder. The command line
 * never has a key, because other users of the machine can read it.
 * @throws {UserError}
 */
export async function findApi(
  { folder, env }: FindApiDeps,
  { url, keyFile }: ApiOptions,
  holder: KeyHolder,
): Promise<Target> {
  const paths = instancePaths(folder)
  const named = keyFile === undefined ? env.SLUICE_API_KEY : await readKey(keyFile, holder)
  if (url !== undefined) return { url: baseOf(url), apiKey: usable(named || missingKey(holder)) }
  const running = await readRunning(paths.running)
  if (running === undefined) throw noSluiceIn(folder, 'an API with --url')
  // The key of this folder is sent only to the API of this folder.
  const own = holder === 'operator' ? paths.operatorKey : paths.key
  return { url: running.apiUrl, apiKey: usable(named || (await readKey(own, holder))) }
}

/**
 * Returns the URL of an API with a slash at its end, because the paths of requests are relative.
 * The URL may have a path.
 */
function baseOf(url: string): string {
  const base = URL.canParse(url) ? new URL(url) : undefined
  if (base === undefined || !/^https?:$/.test(base.protocol))
    throw new UserError('--url must begin with http:// or https://.')
  if (base.username !== '' || base.password !== '')
    throw new UserError('--url must not have a user or a password.')
  if (base.pathname.endsWith('/')) return url
  base.pathname += '/'
  return base.href
}

/**
 * Returns the key, if it has only visible ASCII characters. Refuses others, because `fetch` would
 * throw an error that contains the key.
 */
function usable(key: string): string {
  if (/^[\x21-\x7e]+$/.test(key)) return key
  throw new UserError('The key has characters that no key of Sluice has.')
}

/**
 * Finds the dashboard: `DASHBOARD_URL` or, if the folder's API is used, the dashboard of the Sluice
 * that runs in the folder.
 */
export async function findDashboard(
  { folder, env }: FindApiDeps,
  { url }: ApiOptions,
): Promise<string | undefined> {
  const { DASHBOARD_URL } = url === undefined ? await withRunning(folder, env) : env
  return DASHBOARD_URL?.replace(/\/$/, '')
}

function missingKey(holder: KeyHolder): never {
  throw new UserError(
    `No key is known: put an ${holder}'s key into SLUICE_API_KEY, or name a file with --key-file.`,
  )
}

async function readKey(file: string, holder: KeyHolder): Promise<string> {
  const key = await readFile(file, 'utf8').catch((error) => {
    throw new UserError(`The key cannot be read: ${error instanceof Error ? error.message : error}`)
  })
  return key.trim() || missingKey(holder)
}
