// Saves how far an import got: the file of rejected records first, then the checkpoint that vouches for it.
import type { Checkpoint } from './checkpoint.ts'
import type { Ledger } from './ledger.ts'
import type { RejectedFile } from './rejected-file.ts'

export interface ProgressSaver {
  /** Saves now. */
  save(): Promise<void>
  /** Saves no more. Resolves when the last save is over. */
  stop(): Promise<void>
}

/** After a crash, everything since the last save is posted again, which changes nothing. */
const SAVE_MS = 500

interface SaveDeps {
  ledger: Ledger
  rejected: RejectedFile
  checkpoint: Checkpoint | undefined
  fail: (error: unknown) => void
}

/** Saves every SAVE_MS if the tally has changed. */
export function saveProgress({ ledger, rejected, checkpoint, fail }: SaveDeps): ProgressSaver {
  let savedEvents = 0
  let last = Promise.resolve()

  async function write(): Promise<void> {
    const tally = structuredClone(ledger.tally)
    // Takes the records of exactly these events: nothing else runs in between.
    const rejectedBytes = await rejected.flush()
    if (checkpoint === undefined || tally.events === savedEvents) return
    await checkpoint.save({ tally, rejectedBytes })
    savedEvents = tally.events
  }

  function save(): Promise<void> {
    last = last.then(write)
    return last
  }

  const timer = setInterval(() => void save().catch(fail), SAVE_MS)
  return {
    save,
    async stop() {
      clearInterval(timer)
      await last.catch(() => {})
    },
  }
}
