// The file of rejected records. Each record has its reason. The file is NDJSON that can be
// corrected and imported.
import { createWriteStream } from 'node:fs'
import { rename, stat, truncate } from 'node:fs/promises'
import { pipeline } from 'node:stream/promises'
import type { RejectedRecord } from './ledger.ts'

/** Matches `NAME.rejected.ndjson`, `….rejected.old.ndjson`, and a later `….rejected-2.ndjson`. */
export const REJECTED_NAME = /\.rejected(?:-(\d{1,9}))?(?:\.old)?\.ndjson$/

/**
 * Returns the path of an import's file of rejected records: `FILE.rejected.ndjson` beside the first
 * input. If the first input is itself a file of rejected records, the name has the next number. No
 * input is overwritten or renamed. All paths are absolute.
 */
export function rejectedPathOf(first: string, inputs: ReadonlySet<string>): string {
  const last = REJECTED_NAME.exec(first)
  const name = last === null ? first : first.slice(0, last.index)
  for (let round = last === null ? 1 : Number(last[1] ?? 1) + 1; ; round++) {
    const path = `${name}.rejected${round === 1 ? '' : `-${round}`}.ndjson`
    if (!touchesInput(path, inputs)) return path
  }
}

/** Returns whether writing a rejected file would overwrite or rename one of these files. */
export function touchesInput(path: string, inputs: ReadonlySet<string>): boolean {
  return inputs.has(path) || inputs.has(olderPath(path))
}

function olderPath(path: string): string {
  return path.replace(/(\.ndjson)?$/, '.old$1')
}

export type RejectedFile = ReturnType<typeof createRejectedFile>

/**
 * Creates the file when the first record is rejected. If the file is from an earlier run of the
 * import, its first `keptBytes` stay, because the checkpoint counts their records. Any other file
 * is renamed, because its records may have been corrected by hand.
 */
export function createRejectedFile(path: string, keptBytes: number) {
  let records: RejectedRecord[] = []
  let bytes = keptBytes
  let isPrepared = false

  async function prepare(): Promise<void> {
    const found = await stat(path).catch(unlessMissing)
    if (keptBytes > 0 && found !== undefined && found.size >= keptBytes)
      return truncate(path, keptBytes)
    bytes = 0
    // A device such as /dev/null must not be renamed.
    if (found?.isFile()) await rename(path, olderPath(path))
  }

  return {
    path,
    add(record: RejectedRecord) {
      records.push(record)
    },
    /** Writes the added records. Returns the size of the file. */
    async flush() {
      const added = records
      records = []
      if (added.length === 0) return bytes
      if (!isPrepared) await prepare()
      isPrepared = true
      // Flush, because a checkpoint that counts these records must not outlive them.
      const file = createWriteStream(path, { flags: 'a', flush: true })
      await pipeline(linesOf(added), file)
      bytes += file.bytesWritten
      return bytes
    },
  }
}

/** Makes one line at a time: each has its header or channel, which records share in memory. */
function* linesOf(records: readonly RejectedRecord[]): Generator<string> {
  for (const record of records) yield lineOf(record)
}

/** A longer context is left out, because each rejected record of the file would repeat it. */
const LONGEST_CONTEXT = 64 * 1024

/** A record that nests too deep for JSON is named by its place only. */
function lineOf({ reason, place, format, context, idPrefix, record }: RejectedRecord): string {
  try {
    const isTooLong = (JSON.stringify(context)?.length ?? 0) > LONGEST_CONTEXT
    const written = isTooLong ? { contextLeftOut: true } : { context }
    return `${JSON.stringify({ reason, format, ...place, idPrefix, ...written, record })}\n`
  } catch (error) {
    if (!(error instanceof RangeError)) throw error
  }
  return `${JSON.stringify({ reason, ...place })}\n`
}

/** Ignores the error that a file is missing. Throws any other error. */
export function unlessMissing(error: unknown): undefined {
  if (Object(error).code !== 'ENOENT') throw error
  return undefined
}
