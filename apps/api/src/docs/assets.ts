// Serves the files of the pages under `/docs`: those of Swagger UI from its package, and our own. No other file can be asked for.
import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import { routeUnknown } from '../problems.ts'
import type { Handler } from '../request-context.ts'
import { ASSETS, type AssetName } from './asset-files.ts'

interface Asset {
  bytes: Buffer
  gzipped: Buffer
  /** Changes with the content. */
  version: string
}

const compress = promisify(gzip)
const assets = new Map<AssetName, Promise<Asset>>()

/** A file, read once. About 2.5 MB for all of them. */
function readAsset(name: AssetName): Promise<Asset> {
  const known = assets.get(name)
  if (known !== undefined) return known
  const reading = loadAsset(ASSETS[name].find())
  assets.set(name, reading)
  // The process may have been out of file descriptors.
  reading.catch(() => assets.delete(name))
  return reading
}

async function loadAsset(url: string): Promise<Asset> {
  const bytes = await readFile(new URL(url))
  const version = createHash('sha256').update(bytes).digest('hex').slice(0, 12)
  return { bytes, gzipped: await compress(bytes), version }
}

/** The path of a file, relative to `/docs/assets/`, which changes with its content. */
export async function assetPath(name: AssetName): Promise<string> {
  return `${name}?v=${(await readAsset(name)).version}`
}

/** GET /docs/assets/{name}. */
export function getAsset(): Handler {
  return async ({ request }, { name }) => {
    if (!isAsset(name)) throw routeUnknown()
    const { bytes, gzipped } = await readAsset(name)
    const isGzipped = /\bgzip\b/.test(String(request.headers['accept-encoding']))
    const headers = {
      'content-type': ASSETS[name].mediaType,
      'cache-control': 'public, max-age=31536000, immutable',
      vary: 'accept-encoding',
      'x-content-type-options': 'nosniff',
      ...(isGzipped && { 'content-encoding': 'gzip' }),
    }
    return { status: 200, bytes: isGzipped ? gzipped : bytes, headers }
  }
}

function isAsset(name: unknown): name is AssetName {
  return typeof name === 'string' && Object.hasOwn(ASSETS, name)
}
