// What the parent process does after it has killed an import. It loads no other file of the
// importer.
import { removeTemporaryFolders } from './formats/read/temporary-folder.ts'
import { EXIT_CODES } from './show/exit-codes.ts'

const KILLED =
  'The import was interrupted within a record that takes long to read. Run the same command again: it goes on from its last checkpoint.'

export const killedImport = {
  code: EXIT_CODES.interrupted,
  async ended(pid: number | undefined) {
    await removeTemporaryFolders(pid)
    process.stderr.write(`${KILLED}\n`)
  },
}
