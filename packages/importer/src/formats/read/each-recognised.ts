// Reads the files of an export that have messages, and counts those that lie beside them.
import { type Format, type Found, type InputFile, orRejected, type ReadFile } from '../format.ts'
import { fileBeside } from './files-beside.ts'
import { readBeginning } from './utf8-chunks.ts'

/**
 * Makes the `read` of a format from a function for one file that the format recognises. All other
 * files are counted. A file that is the whole input is read, because `--format` may name its
 * format.
 */
export function eachRecognised(recognises: Format['recognises'], read: ReadFile): Format['read'] {
  return async function* (files, options) {
    const readOne = async function* (file: InputFile): AsyncGenerator<readonly Found[]> {
      if (files.length === 1 || recognises(file, await readBeginning(file)))
        yield* read(file, options)
      else yield [fileBeside(file)]
    }
    for (const file of files) yield* orRejected(file, readOne(file))
  }
}
