// The command `sluice erasures export`: it writes the records of all deletions to a file, for a
// restore of both servers.
import { createWriteStream } from 'node:fs'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createDeletionRecords } from '@sluice/boot/deletion-records'
import { counted } from '@sluice/terminal'
import { Command } from 'commander'
import type { DoctorDeps } from './doctor-command.ts'

/** `sluice erasures`. */
export function erasuresCommand(deps: Pick<DoctorDeps, 'openDb' | 'withQueue' | 'print'>): Command {
  const write = new Command('export')
    .description(
      'Writes what was deleted to a file, without names and texts, for `sluice doctor --after-restore --from`',
    )
    .argument('<file>', 'a new file, or one to replace')
    .action(async (file: string) => {
      const { db, close } = await deps.openDb()
      try {
        const count = await deps.withQueue(async (...queue) => {
          const { complete, stored } = createDeletionRecords(...queue, db)
          const count = await complete()
          const lines = Readable.from(stored()).map((record) => `${JSON.stringify(record)}\n`)
          await pipeline(lines, createWriteStream(file))
          return count
        })
        deps.print(`Wrote ${counted(count, 'record')} to ${file}.`)
      } finally {
        await close()
      }
    })
  return new Command('erasures')
    .description('Keeps what was deleted, in case that backups are restored')
    .addCommand(write)
}
