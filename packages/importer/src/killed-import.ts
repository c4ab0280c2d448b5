// What is left to do after an import was killed. Its parent process loads nothing else of it.
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
