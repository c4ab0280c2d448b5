// Reads the files of an export that contain messages, and counts the files beside them.
import { type Format, type Found, type InputFile, orRejected, type ReadFile } from '../format.ts'
import { fileBeside } from './files-beside.ts'
import { readBeginning } from './utf8-chunks.ts'

/**
 * Makes three members of a format from a function that reads one file. The format reads only files
 * that it recognises, and counts all others. If there is only one file, it reads that file in any
 * case, because `--format` may name the format.
 */
export function eachRecognised(
  recognises: Format['recognises'],
  readFile: ReadFile,
): Pick<Format, 'recognises' | 'skipsOthers' | 'read'> {
  return {
    recognises,
    skipsOthers: true,
    async *read(files, options) {
      const readOne = async function* (file: InputFile): AsyncGenerator<readonly Found[]> {
        if (files.length === 1 || recognises(file, await readBeginning(file)))
          yield* readFile(file, options)
        else yield [fileBeside(file)]
      }
      for (const file of files) yield* orRejected(file, readOne(file))
    },
  }
}
