// The file of rejected records: each with its reason, as NDJSON that can be fixed and imported.
import { createWriteStream } from 'node:fs'
import { rename, stat, truncate } from 'node:fs/promises'
import { pipeline } from 'node:stream/promises'
import type { RejectedRecord } from './ledger.ts'

/**
 * Matches `NAME.rejected.ndjson`, `NAME.rejected.old.ndjson`, and `NAME.rejected-2.ndjson` of the
 * next import.
 */
export const REJECTED_NAME = /\.rejected(?:-(\d{1,9}))?(?:\.old)?\.ndjson$/

/**
 * Returns the file of rejected records of an import: `FILE.rejected.ndjson` beside the first input,
 * or the next number if that is a file of rejected records itself. No input is overwritten or
 * renamed. All paths are absolute.
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
 * Creates the file when the first record is rejected. Of an earlier run's file, the first
 * `keptBytes` are kept, because the checkpoint counts their records. Any other file is renamed: its
 * records may have been fixed by hand.
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
    // A device such as /dev/null must stay where it is.
    if (found?.isFile()) await rename(path, olderPath(path))
  }

  return {
    path,
    add(record: RejectedRecord) {
      records.push(record)
    },
    /** Writes what was added. Returns the size of the file. */
    async flush() {
      const added = records
      records = []
      if (added.length === 0) return bytes
      if (!isPrepared) await prepare()
      isPrepared = true
      // Flushed, because a checkpoint that counts these records must not outlive them.
      const file = createWriteStream(path, { flags: 'a', flush: true })
      await pipeline(linesOf(added), file)
      bytes += file.bytesWritten
      return bytes
    },
  }
}

/**
 * One line at a time: records of a file share its header or channel in memory, and their lines do
 * not.
 */
function* linesOf(records: readonly RejectedRecord[]): Generator<string> {
  for (const record of records) yield lineOf(record)
}

/** A longer context is not written, because each rejected record of its file would repeat it. */
const LONGEST_CONTEXT = 64 * 1024

/**
 * Writes only the reason and the place of a record that nests too deep for JSON. The place says
 * where the record is.
 */
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

/** Handles the error of a file that may be missing. */
export function unlessMissing(error: unknown): undefined {
  if (Object(error).code !== 'ENOENT') throw error
  return undefined
}
