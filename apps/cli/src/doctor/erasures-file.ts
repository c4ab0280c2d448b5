// The file of the command `sluice erasures export`: the records of all deletions, for a restore of
// both servers.
import { createWriteStream } from 'node:fs'
import { open, rename, stat } from 'node:fs/promises'
import { createInterface } from 'node:readline'
import { pipeline } from 'node:stream/promises'
import { readRecord } from '@sluice/boot/deletion-records'
import type { DeletionRecord } from '@sluice/contract'
import { readFirstId } from '@sluice/store'
import { counted, UserError } from '@sluice/terminal'
import type { Db } from 'mongodb'

/** The first line: of which store the file is, and the number of records that follow. */
interface Head {
  store?: string | undefined
  records: number
}

/** The streams that `-` names, for commands in a container, whose files go with it. */
export type Streams = Pick<NodeJS.Process, 'stdin' | 'stdout'>

/**
 * Writes a file. Until it is complete, an earlier one of this name stays. A device or a pipe is
 * written as it is: a rename would replace it.
 */
export async function writeErasures(
  { stdout }: Streams,
  file: string,
  db: Db,
  records: AsyncIterable<DeletionRecord>,
  count: number,
): Promise<void> {
  const head: Head = { store: await readFirstId(db), records: count }
  async function* lines() {
    yield `${JSON.stringify(head)}\n`
    for await (const record of records) yield `${JSON.stringify(record)}\n`
  }
  const isStdout = file === '-'
  const found = await stat(file).catch(() => undefined)
  const isFile = !isStdout && (found === undefined || found.isFile())
  const part = isFile ? `${file}.sluice-part` : file
  try {
    const output = isStdout ? stdout : createWriteStream(part, { flush: isFile })
    await pipeline(lines, output, { end: !isStdout })
    if (isFile) await rename(part, file)
  } catch (error) {
    throw faultOf(part, error)
  }
}

/** Names the file in an error of the file system, which could be taken for an error of a server. */
function faultOf(file: string, error: unknown): unknown {
  const isOfFile = error instanceof Error && 'syscall' in error
  return isOfFile ? new UserError(`${file}: ${error.message}.`) : error
}

/** Reads a file. @throws {UserError} if it is of another store, incomplete, or not such a file. */
export async function* readErasures(
  { stdin }: Streams,
  file: string,
  db: Db,
): AsyncGenerator<DeletionRecord> {
  let [at, head]: [number, Partial<Head>] = [0, {}]
  const parseLine = (line: string): DeletionRecord | undefined => {
    at += 1
    try {
      const parsed = JSON.parse(line)
      if (at > 1 || !('records' in parsed)) return readRecord(parsed)
      head = parsed
    } catch (error) {
      throw new UserError(`Line ${at} of ${file}: ${error}`)
    }
    return undefined
  }
  const own = await readFirstId(db)
  const openLines = async () => (await open(file)).readLines()
  const lines =
    file === '-'
      ? createInterface({ input: stdin })
      : await openLines().catch((error) => Promise.reject(faultOf(file, error)))
  for await (const line of lines) {
    const record = line === '' ? undefined : parseLine(line)
    // A database without an id has no threads.
    if ((head.store ?? own) !== (own ?? head.store))
      throw new UserError(
        `${file} is of the store ${head.store}, and this one began as ${own}. If it is right, remove its first line.`,
      )
    if (record !== undefined) yield record
  }
  const { records = 0 } = head
  if (at <= records)
    throw new UserError(`${file} has only ${at - 1} of ${counted(records, 'record')}.`)
}
