// Where an export goes: to a file, which another run can go on with, or to standard output.
import { open, rename, stat } from 'node:fs/promises'
import { promisify } from 'node:util'
import * as zlib from 'node:zlib'
import { createCheckpoint } from '@sluice/importer/checkpoint'
import { jsonText, UserError } from '@sluice/terminal'

/** How far an export has got. */
export interface ExportProgress {
  lines: number
  /** The length of the file up to the last complete page. */
  bytes: number
  /** The cursor of the next page. */
  after?: string | undefined
  /** The moment that a relative `--since` named in the first run, as ISO 8601. */
  since?: string | undefined
}

export interface ExportOutput {
  /** Where an earlier run stopped. */
  begin: ExportProgress
  /** Writes a page, and returns its bytes. */
  write(ndjson: string): Promise<number>
  /** Another run can go on from here. */
  save?(progress: ExportProgress): Promise<void>
  complete?(progress: ExportProgress): Promise<void>
  close?(): Promise<void>
}

/**
 * Compresses each page as a gzip member or Zstandard frame of its own, so that a run can append to
 * a file.
 */
async function compress(name: string, text: string): Promise<Buffer> {
  if (/\.gz$/i.test(name)) return promisify(zlib.gzip)(text)
  if (!/\.zst$/i.test(name)) return Buffer.from(text)
  if (!('zstdCompress' in zlib)) throw new UserError('This Node writes no Zstandard. Use .gz.')
  return promisify(zlib.zstdCompress)(text)
}

/**
 * Opens a file. Until the export is complete, it has another name, so that an earlier export of the
 * name stays, and nobody takes a part for the whole.
 */
export async function openFile(file: string, fingerprint: unknown): Promise<ExportOutput> {
  const part = `${file}.sluice-part`
  const checkpoint = createCheckpoint<ExportProgress>(`${file}.sluice-checkpoint`, fingerprint)
  const { progress } = await checkpoint.load()
  const found = await stat(file).catch(() => undefined)
  if (found && !found.isFile())
    throw new UserError(`${file} is no file. Name a file, or - for standard output.`)
  const { size } = await stat(part).catch(() => ({ size: -1 }))
  const begin = progress && size >= progress.bytes ? progress : { lines: 0, bytes: 0 }
  const handle = await open(part, 'a').catch(({ message }: Error) => {
    throw new UserError(`The file can't be written: ${message}.`)
  })
  await handle.truncate(begin.bytes)
  return {
    begin,
    async write(ndjson) {
      const data = await compress(file, ndjson)
      await handle.appendFile(data)
      return data.length
    },
    async save(at) {
      // The checkpoint must not outlive what it counts.
      await handle.datasync()
      await checkpoint.save(at)
    },
    async complete({ bytes }) {
      await handle.sync()
      const { size } = await handle.stat()
      if (size === bytes) await rename(part, file)
      await checkpoint.remove()
      if (size !== bytes)
        throw new UserError(`Another export has written ${file} meanwhile. Export it again.`)
    },
    close: () => handle.close(),
  }
}

/** Opens standard output. On a terminal, no text of a thread may steer it. */
export function openStdout(stdout: NodeJS.WriteStream): ExportOutput {
  const printed = (ndjson: string) => ndjson.replaceAll(/.+/g, (line) => jsonText(JSON.parse(line)))
  return {
    begin: { lines: 0, bytes: 0 },
    async write(ndjson) {
      const text = stdout.isTTY ? printed(ndjson) : ndjson
      const { promise, resolve } = Promise.withResolvers<Error | null | undefined>()
      stdout.write(text, resolve)
      const error = await promise
      if (error) throw new UserError(`Standard output can't be written: ${error.message}.`)
      return Buffer.byteLength(text)
    },
  }
}
