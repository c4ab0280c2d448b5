// The file of rejected records: each with its reason, as NDJSON that can be fixed and imported.
import { appendFile, rename, stat, truncate } from 'node:fs/promises'
import type { RejectedRecord } from './ledger.ts'

/** `NAME.rejected.ndjson`, an older file of that name, and `NAME.rejected-2.ndjson` of the next import. */
export const REJECTED_NAME = /\.rejected(?:-(\d{1,9}))?(?:\.old)?\.ndjson$/

/**
 * Returns the file of rejected records of an import: `FILE.rejected.ndjson` beside the first input, or the next number
 * if that is a file of rejected records itself. No input is overwritten or renamed. All paths are absolute.
 */
export function rejectedPathOf(first: string, inputs: ReadonlySet<string>): string {
  const last = REJECTED_NAME.exec(first)
  const name = last === null ? first : first.slice(0, last.index)
  for (let round = last === null ? 1 : Number(last[1] ?? 1) + 1; ; round++) {
    const path = `${name}.rejected${round === 1 ? '' : `-${round}`}.ndjson`
    if (!touchesInput(path, inputs)) return path
  }
}

/** Whether writing a file of rejected records would overwrite or rename one of these files. */
export function touchesInput(path: string, inputs: ReadonlySet<string>): boolean {
  return inputs.has(path) || inputs.has(olderPath(path))
}

function olderPath(path: string): string {
  return path.replace(/(\.ndjson)?$/, '.old$1')
}

export type RejectedFile = ReturnType<typeof createRejectedFile>

/**
 * Makes the file with its first record. Keeps an older file of that name: its records may have been fixed by hand.
 *
 * @param keptBytes of the file for which the checkpoint of an interrupted run vouches. The rest is cut off.
 */
export function createRejectedFile(path: string, keptBytes: number) {
  let lines: string[] = []
  let bytes = keptBytes
  let isPrepared = false

  async function prepare(): Promise<void> {
    const found = await stat(path).catch(unlessMissing)
    if (keptBytes > 0 && found !== undefined && found.size >= keptBytes) return truncate(path, keptBytes)
    bytes = 0
    // A device such as /dev/null must stay where it is.
    if (found?.isFile()) await rename(path, olderPath(path))
  }

  return {
    path,
    add(record: RejectedRecord) {
      lines.push(lineOf(record))
    },
    /** Writes what was added. Returns the size of the file. */
    async flush() {
      const text = lines.join('')
      lines = []
      if (text === '') return bytes
      if (!isPrepared) await prepare()
      isPrepared = true
      // The checkpoint that counts these records must not outlive them.
      await appendFile(path, text, { flush: true })
      bytes += Buffer.byteLength(text)
      return bytes
    },
  }
}

/** A record that nests too deep to be written is left out: its place says where the record is. */
function lineOf({ reason, place, format, context, idPrefix, record }: RejectedRecord): string {
  try {
    return `${JSON.stringify({ reason, format, ...place, idPrefix, context, record })}\n`
  } catch (error) {
    if (!(error instanceof RangeError)) throw error
    return `${JSON.stringify({ reason, ...place })}\n`
  }
}

export function unlessMissing(error: unknown): undefined {
  if (Object(error).code !== 'ENOENT') throw error
  return undefined
}
