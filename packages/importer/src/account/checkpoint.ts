// The checkpoint of an import or an export says how far it got, so that another run can continue
// from there. The checkpoint of an import contains the length of the file of rejected records, so it
// is saved after that file.
import { randomUUID } from 'node:crypto'
import { open, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { digestOf } from '../formats/values/digest.ts'
import type { Ledger, Tally } from './ledger.ts'
import { type RejectedFile, unlessMissing } from './rejected-file.ts'

/** All events up to `tally.events` are stored, or in the file of rejected records. */
interface ImportProgress {
  tally: Tally
  rejectedBytes: number
}

export type Checkpoint = ReturnType<typeof createCheckpoint<ImportProgress>>

/** Raise this if an event may get another number, or if the fields of the tally change. */
const VERSION = 11

/**
 * Opens the checkpoint file.
 * @param fingerprint everything on which the order and the meaning of events depend.
 */
export function createCheckpoint<Progress = ImportProgress>(path: string, fingerprint: unknown) {
  const digest = digestOf(JSON.stringify([VERSION, fingerprint]))
  return {
    path,
    /** Reads the progress. `isOther`: the file is of another input, target or options. */
    async load(): Promise<{ progress?: Progress; isOther: boolean }> {
      const text = await readFile(path, 'utf8').catch(unlessMissing)
      if (text === undefined) return { isOther: false }
      // If somebody wrote the file by hand, it may not be JSON.
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

/** Writes a file and removes it, to report a missing, read-only or full folder before reading. */
export async function checkFolder(folder: string): Promise<void> {
  const probe = join(folder, `.sluice-${randomUUID()}`)
  const removeIt = () => rm(probe, { force: true }).catch(() => {})
  await writeFile(probe, Buffer.alloc(NEEDED_BYTES), { flush: true }).finally(removeIt)
}

/** More than what a checkpoint and some rejected records need. */
const NEEDED_BYTES = 64 * 1024

/** A reader sees the old content or the new one, even after a loss of power. */
async function writeWhole(path: string, text: string): Promise<void> {
  const draft = `${path}.new`
  await writeFile(draft, text, { flush: true })
  await rename(draft, path)
  await syncFolder(dirname(path))
}

/** Makes a rename durable. Does nothing on operating systems that can't sync a folder. */
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

/** Saves a changed tally every SAVE_MS. After a save has failed, saves nothing more. */
export function saveProgress({ ledger, rejected, checkpoint, fail }: SaveDeps) {
  let savedEvents = 0
  let last = Promise.resolve()

  async function write(): Promise<void> {
    const tally = structuredClone(ledger.tally)
    // The file then has the records of exactly the events in `tally`, because no other code runs
    // between these two lines.
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
