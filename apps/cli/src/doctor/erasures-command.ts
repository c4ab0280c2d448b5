// The command `sluice erasures export`: it writes the records of all deletions to a file, for a
// restore of both servers.
import { createDeletionRecords } from '@sluice/boot/deletion-records'
import { counted } from '@sluice/terminal'
import { Command } from 'commander'
import { withDb } from '../with-db.ts'
import type { DoctorDeps } from './doctor-command.ts'
import { writeErasures } from './erasures-file.ts'

/** `sluice erasures`. */
export function erasuresCommand(
  deps: Pick<DoctorDeps, 'openDb' | 'withQueue' | 'process' | 'print' | 'show'>,
): Command {
  const write = new Command('export')
    .description(
      'Writes what was deleted to a file, without names and texts, for `sluice doctor --after-restore --from`',
    )
    .argument('<file>', 'a new file, or one to replace; - for standard output')
    .action(async (file: string) => {
      const count = await withDb(deps, (db) =>
        deps.withQueue(async (...queue) => {
          const { complete, stored } = createDeletionRecords(...queue, db)
          const count = await complete()
          await writeErasures(deps.process, file, db, stored(), count)
          return count
        }),
      )
      const say = file === '-' ? deps.show : deps.print
      say(`Wrote ${counted(count, 'record')} to ${file}.`)
    })
  return new Command('erasures')
    .description('Keeps what was deleted, in case that backups are restored')
    .addCommand(write)
}
