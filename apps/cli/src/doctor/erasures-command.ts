// The command `sluice erasures export`: it writes the records of all deletions to a file, for a
// restore of both servers.
import { writeFile } from 'node:fs/promises'
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
        const read = await deps.withQueue((...queue) => createDeletionRecords(...queue, db).read())
        await writeFile(file, read.map((record) => `${JSON.stringify(record)}\n`).join(''))
        deps.print(`Wrote ${counted(read.length, 'record')} to ${file}.`)
      } finally {
        await close()
      }
    })
  return new Command('erasures')
    .description('Keeps what was deleted, in case that backups are restored')
    .addCommand(write)
}
