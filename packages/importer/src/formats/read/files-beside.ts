// Counts files without messages that are beside files with messages, by kind.
import { type InputFile, type Noted, skipped } from '../format.ts'

const MEDIA =
  /\.(jpe?g|png|gif|webp|hei[cf]|bmp|tiff?|svg|ico|avif|mp3|m4a|og[ga]|opus|wav|aac|flac|amr|mp4|m4v|mov|avi|mkv|webm|3gp|tgs|was|lottie)$/i

const KINDS: readonly [RegExp, string][] = [
  [MEDIA, 'media'],
  [/\.(pdf|docx?|pptx?|odt)$/i, 'documents'],
  [/\.(css|js|map|ttf|otf|woff2?|eot)$/i, 'parts of web pages'],
]

/** Returns whether a file is a picture, a sound or a film, by its name. */
export function isMedia({ path }: InputFile): boolean {
  return MEDIA.test(path)
}

/** Returns the kind of a file if its name says that it has no messages. */
export function kindWithoutMessages({ path, isEmpty }: InputFile): string | undefined {
  return isEmpty ? 'empty files' : KINDS.find(([names]) => names.test(path))?.[1]
}

/**
 * Counts a file of an export that contains no messages.
 * @param kind names what the export's program writes, except media.
 */
export function fileBeside(
  file: InputFile,
  kind = kindWithoutMessages(file) ?? 'file attachments',
): Noted {
  return skipped(`files without messages: ${isMedia(file) ? 'media' : kind}`, { path: file.path })
}
