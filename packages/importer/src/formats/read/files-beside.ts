// Counts the files that lie beside messages and have none, by their kinds.
import { type InputFile, type Noted, skipped } from '../format.ts'

const MEDIA =
  /\.(jpe?g|png|gif|webp|hei[cf]|bmp|tiff?|svg|ico|avif|mp3|m4a|og[ga]|opus|wav|aac|flac|amr|mp4|m4v|mov|avi|mkv|webm|3gp|tgs|was|lottie)$/i

const KINDS: readonly [RegExp, string][] = [
  [MEDIA, 'media'],
  [/\.(pdf|docx?|pptx?|odt)$/i, 'documents'],
  [/\.(css|js|map|ttf|otf|woff2?|eot)$/i, 'parts of web pages'],
]

/** Whether a file is a picture, a sound or a film by its name. */
export function isMedia({ path }: InputFile): boolean {
  return MEDIA.test(path)
}

/** Returns the kind of a file that has no messages by its name. */
export function kindWithoutMessages({ path, isEmpty }: InputFile): string | undefined {
  return isEmpty ? 'empty files' : KINDS.find(([names]) => names.test(path))?.[1]
}

/**
 * Counts a file of an export that is no file of messages. `kind` names what its program writes, but
 * for media.
 */
export function fileBeside(
  file: InputFile,
  kind = kindWithoutMessages(file) ?? 'file attachments',
): Noted {
  return skipped(`files without messages: ${isMedia(file) ? 'media' : kind}`, { path: file.path })
}
