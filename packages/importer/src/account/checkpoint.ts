// The checkpoint of an import: how far it got, in a file beside its input, so that it goes on there after any end.
// It is saved after the file of rejected records, for which it vouches.
import { hash } from 'node:crypto'
import { open, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import type { Ledger, Tally } from './ledger.ts'
import { type RejectedFile, unlessMissing } from './rejected-file.ts'

/** All events up to `tally.events` are stored, or in the file of rejected records. */
interface Progress {
  tally: Tally
  rejectedBytes: number
}

export type Checkpoint = ReturnType<typeof createCheckpoint>

/** Changes whenever an event of the input may get another number, and with the fields of the tally. */
const VERSION = 6

/** @param fingerprint of all on which the order and the meaning of events depend: input, options, and target. */
export function createCheckpoint(path: string, fingerprint: unknown) {
  const digest = hash('sha256', JSON.stringify([VERSION, fingerprint]), 'base64url')
  return {
    path,
    /** `isOther`: the file is of another import. */
    async load(): Promise<{ progress?: Progress; isOther: boolean }> {
      const text = await readFile(path, 'utf8').catch(unlessMissing)
      const saved = text === undefined ? undefined : parse(text)
      if (saved?.fingerprint === digest) return { progress: saved.progress, isOther: false }
      return { isOther: text !== undefined }
    },
    async save(progress: Progress) {
      await writeWhole(path, `${JSON.stringify({ fingerprint: digest, progress }, null, 2)}\n`)
    },
    async remove() {
      await rm(path, { force: true })
    },
  }
}

/** A reader sees the old file or the new one, and after a loss of power too. */
async function writeWhole(path: string, text: string): Promise<void> {
  const draft = `${path}.new`
  await writeFile(draft, text, { flush: true })
  await rename(draft, path)
  await syncFolder(dirname(path))
}

/** Some systems can't sync a folder; they rename durably by other means. */
async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, 'r').catch(() => undefined)
  await handle?.sync().catch(() => {})
  await handle?.close()
}

/** Undefined if the text is no JSON: the file was written by hand. */
function parse(text: string): { fingerprint?: unknown; progress: Progress } | null | undefined {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** After a crash, everything since the last save is posted again, which changes nothing. */
const SAVE_MS = 500

interface SaveDeps {
  ledger: Ledger
  rejected: RejectedFile
  checkpoint: Checkpoint | undefined
  fail: (error: unknown) => void
}

/** Saves every SAVE_MS if the tally has changed, and never again after a save that failed. */
export function saveProgress({ ledger, rejected, checkpoint, fail }: SaveDeps) {
  let savedEvents = 0
  let last = Promise.resolve()

  async function write(): Promise<void> {
    const tally = structuredClone(ledger.tally)
    // Contains the records of exactly these events: nothing else runs in between.
    const rejectedBytes = await rejected.flush()
    if (checkpoint === undefined || tally.events === savedEvents) return
    await checkpoint.save({ tally, rejectedBytes })
    savedEvents = tally.events
  }

  const save = () => (last = last.then(write))
  const timer = setInterval(() => void save().catch(fail), SAVE_MS)
  return {
    save,
    /** Saves for the last time. */
    end() {
      clearInterval(timer)
      return save()
    },
  }
}
