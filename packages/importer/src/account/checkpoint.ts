// The checkpoint of an import says how far the import got, so that another run goes on from there.
// It is saved after the file of rejected records, because it contains the length of that file.
import { randomUUID } from 'node:crypto'
import { open, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { digestOf } from '../formats/values/digest.ts'
import type { Ledger, Tally } from './ledger.ts'
import { type RejectedFile, unlessMissing } from './rejected-file.ts'

/** All events up to `tally.events` are stored, or in the file of rejected records. */
interface Progress {
  tally: Tally
  rejectedBytes: number
}

export type Checkpoint = ReturnType<typeof createCheckpoint>

/**
 * Raise it if an event of the same input may get another number, or if the tally gets other fields.
 */
const VERSION = 10

/**
 * Opens the checkpoint file. `fingerprint` has all that the order and the meaning of events depend
 * on.
 */
export function createCheckpoint(path: string, fingerprint: unknown) {
  const digest = digestOf(JSON.stringify([VERSION, fingerprint]))
  return {
    path,
    /** Reads the progress. `isOther`: the file belongs to another input, target or options. */
    async load(): Promise<{ progress?: Progress; isOther: boolean }> {
      const text = await readFile(path, 'utf8').catch(unlessMissing)
      if (text === undefined) return { isOther: false }
      // A file that someone wrote by hand may be no JSON.
      const saved = await Promise.resolve(text)
        .then(JSON.parse)
        .catch(() => undefined)
      return saved?.fingerprint === digest
        ? { progress: saved.progress, isOther: false }
        : { isOther: true }
    },
    async save(progress: Progress) {
      await writeWhole(path, `${JSON.stringify({ fingerprint: digest, progress }, null, 2)}\n`)
    },
    async remove() {
      await rm(path, { force: true })
    },
  }
}

/**
 * Writes a file and removes it: a folder that is missing, unwritable or full fails before the input
 * is read.
 */
export async function checkFolder(folder: string): Promise<void> {
  const probe = join(folder, `.sluice-${randomUUID()}`)
  const removeIt = () => rm(probe, { force: true }).catch(() => {})
  await writeFile(probe, Buffer.alloc(NEEDED_BYTES), { flush: true }).finally(removeIt)
}

/** More than what a checkpoint and some rejected records need. */
const NEEDED_BYTES = 64 * 1024

/**
 * Replaces a file in one step: a reader sees the old content or the new one, also after a loss of
 * power.
 */
async function writeWhole(path: string, text: string): Promise<void> {
  const draft = `${path}.new`
  await writeFile(draft, text, { flush: true })
  await rename(draft, path)
  await syncFolder(dirname(path))
}

/** Makes a rename durable. Systems that can't sync a folder do so by other means. */
async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, 'r').catch(() => undefined)
  await handle?.sync().catch(() => {})
  await handle?.close()
}

/** After a crash, everything since the last save is posted again, which changes nothing. */
const SAVE_MS = 500

interface SaveDeps {
  ledger: Ledger
  rejected: RejectedFile
  checkpoint: Checkpoint | undefined
  fail: (error: unknown) => void
}

/**
 * Saves the progress every SAVE_MS, if the tally has changed. After a save that failed, it never
 * saves again.
 */
export function saveProgress({ ledger, rejected, checkpoint, fail }: SaveDeps) {
  let savedEvents = 0
  let last = Promise.resolve()

  async function write(): Promise<void> {
    const tally = structuredClone(ledger.tally)
    // The file then has the records of exactly the events in `tally`: no other code runs between
    // these two lines.
    const rejectedBytes = await rejected.flush()
    if (checkpoint === undefined || tally.events === savedEvents) return
    await checkpoint.save({ tally, rejectedBytes })
    savedEvents = tally.events
  }

  const save = () => (last = last.then(write))
  const timer = setInterval(() => void save().catch(fail), SAVE_MS)
  return {
    save,
    end() {
      clearInterval(timer)
      return save()
    },
  }
}
