// Keeps lists of values on the disk, so that they may exceed memory.
import { randomUUID } from 'node:crypto'
import { closeSync, openSync, readSync, unlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { UserError } from '@sluice/terminal'

/** The least code units of a block, which is written and read as a whole. */
const BLOCK_UNITS = 32 * 1024

export interface Spool<T extends object> {
  /**
   * Adds a value. If it has a `text`, that must be one line, and is written unchanged, because it
   * is long and already JSON.
   */
  add(value: T & { text?: string }): void
  /** Ends adding. Yields the values in blocks, in the order in which they were added. */
  blocks(): Generator<readonly T[], undefined>
}

export type SpoolFile = ReturnType<typeof openSpoolFile>

/**
 * Opens a file for any number of lists. It has no name, so the system removes it when this process
 * ends.
 */
export function openSpoolFile(folder: string) {
  const onDisk = <T>(work: () => T): T => {
    try {
      return work()
    } catch (cause) {
      const advice =
        'Free some space, or name another folder with --temp-dir, and run the same command again.'
      throw new UserError(
        `The temporary file in ${folder} cannot be used: ${Object(cause).message}. ${advice}`,
        {
          cause,
        },
      )
    }
  }
  const path = join(folder, `sluice-${randomUUID()}`)
  const file = onDisk(() => openSync(path, 'wx+', 0o600))
  onDisk(() => unlinkSync(path))
  let end = 0

  function createSpool<T extends object>(): Spool<T> {
    const written: { at: number; bytes: number }[] = []
    let values: string[] = []
    let texts: string[] = []
    let units = 0

    function endBlock(): void {
      const content = Buffer.from([`[${values.join()}]`, ...texts].join('\n'))
      onDisk(() => writeFileSync(file, content))
      written.push({ at: end, bytes: content.length })
      end += content.length
      values = []
      texts = []
      units = 0
    }

    return {
      add({ text = '', ...value }) {
        const json = JSON.stringify(value)
        values.push(json)
        texts.push(text)
        units += json.length + text.length
        if (units >= BLOCK_UNITS) endBlock()
      },
      *blocks() {
        if (values.length > 0) endBlock()
        for (const { at, bytes } of written) {
          const content = Buffer.allocUnsafe(bytes)
          onDisk(() => readSync(file, content, 0, bytes, at))
          const [json = '', ...lines] = content.toString().split('\n')
          yield JSON.parse(json).map((value: object, at: number) => ({ ...value, text: lines[at] }))
        }
        return undefined
      },
    }
  }

  return { createSpool, close: () => closeSync(file) }
}
