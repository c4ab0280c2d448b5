// Reads the files of an export that contain messages, and counts the files beside them.
import { type Format, type Found, type InputFile, orRejected, type ReadFile } from '../format.ts'
import { fileBeside } from './files-beside.ts'
import { readBeginning } from './utf8-chunks.ts'

/**
 * Makes the `read` of a format from a function that reads one file. Reads only files that the
 * format recognises, and counts all others. If there is only one file, reads it in any case,
 * because `--format` may name the format.
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
