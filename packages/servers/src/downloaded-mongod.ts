import { lookup } from 'node:dns/promises'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import type { Machine, Missing } from './engine.ts'

const downloadHost = 'fastdl.mongodb.org'
const patienceMs = 2_000

export const downloadedVersion = '8.2.6'

/** A real mongod, downloaded once for this user. The host is looked up first: where it can't be reached, the download itself would try for long. */
export async function downloadedMongod({ cacheDir, say }: Machine): Promise<string | Missing> {
  const { DryMongoBinary, MongoBinary } = await import('mongodb-memory-server-core')
  const wanted = { version: downloadedVersion, downloadDir: join(cacheDir, 'mongod') }
  const there = await DryMongoBinary.locateBinary(wanted)
  if (there !== undefined) return there
  if (!(await resolves(downloadHost))) return { missing: `${downloadHost} can't be reached from here` }
  say(`Downloading MongoDB ${downloadedVersion}, once`)
  return MongoBinary.getPath(wanted)
}

/** Within two seconds: the answer of a machine without a network can take minutes. */
function resolves(host: string): Promise<boolean> {
  const known = lookup(host).then(
    () => true,
    () => false,
  )
  return Promise.race([known, pause(patienceMs, false, { ref: false })])
}
