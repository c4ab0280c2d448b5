// Opens what the user names (files, folders, archives, standard input), as sets of files that
// formats can read.
import { createReadStream, existsSync } from 'node:fs'
import { readdir, stat } from 'node:fs/promises'
import { basename, join, resolve } from 'node:path'
import { Readable } from 'node:stream'
import { UserError } from '@sluice/terminal'
import { REJECTED_NAME } from '../account/rejected-file.ts'
import { type InputFile, type Noted, skipped } from '../formats/format.ts'
import type { Done, RawFile, Reading } from './read-counted.ts'
import { COMPRESSIONS, readCounted, readDiskBeginning, unreadable } from './read-counted.ts'
import { openZip } from './zip.ts'

/** Stands for standard input. */
export const STDIN = '-'
const STDIN_NAME = 'stdin'

export type Input = Awaited<ReturnType<typeof openInput>>

export interface InputSet {
  name: string
  files: InputFile[]
  /** Whether the files were named one by one. */
  isList?: true
}

/**
 * Opens the input as sets: each folder, each archive, and all files that are named one by one.
 * `fingerprint` changes with each file. It is undefined for standard input, which can't be read
 * twice.
 * @throws {UserError} if something can't be opened.
 */
export async function openInput(
  names: readonly string[],
  { stdin, ...how }: Omit<Reading, 'progress'> & { stdin: Readable },
) {
  // Close standard input, because a pipe whose writer continues would keep a failed import from
  // ending.
  const closers: (() => unknown)[] = names.includes(STDIN) ? [() => stdin.destroy()] : []
  const close = () => {
    for (const closeOne of closers) closeOne()
  }
  const progress: Done = { total: 0, done: 0 }
  const reading: Reading = { progress, ...how }
  const single: InputSet = {
    name: names.find((name) => name !== STDIN) ?? STDIN_NAME,
    files: [],
    isList: true,
  }
  const sets: InputSet[] = []
  const notOpened: Noted[] = []
  const fingerprint: unknown[] = []

  function asInput(raw: RawFile, isNamed: boolean): InputFile {
    const compression = COMPRESSIONS.find(({ extension }) => extension.test(raw.path))
    const { onDisk } = raw
    const archive = onDisk !== undefined &&
      !isNamed &&
      ZIP.test(onDisk) && { openArchive: () => openArchive(onDisk) }
    progress.total += archive ? 0 : (raw.bytes ?? 0)
    const encoding = REJECTED_NAME.test(raw.path) ? undefined : how.encoding
    const open = readCounted(raw, { ...reading, encoding }, compression)
    const name = compression === undefined ? raw.path : raw.path.replace(compression.extension, '')
    // A Macintosh writes `ö` as two characters, but an export's lists may write it as one.
    const path = name.normalize()
    const isPlain = onDisk !== undefined && compression === undefined && how.encoding === undefined
    const beginning = isPlain && {
      beginning: (bytes: number) => readDiskBeginning(raw, bytes, reading),
    }
    return { path, isEmpty: raw.bytes === 0, isNamed, open, ...beginning, ...archive }
  }

  const asInputs = (raw: readonly RawFile[]) => raw.map((one) => asInput(one, false))

  /** Opens a zip archive until the input is closed. */
  async function openArchive(name: string): Promise<InputFile[]> {
    const zip = await openZip(name)
    closers.push(zip.close)
    notOpened.push(...zip.files.flatMap(({ path }) => (isWanted(path) ? [] : notesOnHidden(path))))
    return asInputs(zip.files.filter(({ path }) => isWanted(path)))
  }

  /** Adds the files of a folder or an archive as a set. */
  function addSet(name: string, files: InputFile[]): void {
    if (files.length === 0) throw new UserError(`${name} holds no file.`)
    sets.push({ name, files })
  }

  async function openOne(name: string): Promise<void> {
    if (name === STDIN) return void single.files.push(await openStdin(stdin, reading))
    const facts = await stat(name)
    fingerprint.push([resolve(name), facts.size, facts.mtimeMs])
    if (facts.isDirectory()) {
      const { files, others, hidden } = await filesIn(name)
      fingerprint.push(
        others,
        ...files.map(({ path, bytes, changedAt }) => [path, bytes, changedAt]),
      )
      notOpened.push(
        ...others.map((path) => skipped(IRREGULAR, { path })),
        ...hidden.flatMap(notesOnHidden),
      )
      addSet(name, asInputs(files))
    } else if (!facts.isFile()) {
      throw new UserError(
        `${name} is no regular file. Pipe it to standard input, and name - instead.`,
      )
    } else if (ZIP.test(name)) addSet(name, await openArchive(name))
    else {
      const open = () => createReadStream(name)
      // If two files have the same name (such as exports of one chat), their folders distinguish
      // them.
      const path = single.files.some((file) => file.path === basename(name)) ? name : basename(name)
      single.files.push(asInput({ path, bytes: facts.size, onDisk: name, open }, true))
    }
  }

  for (const name of new Set(names))
    await openOne(name).catch((error) => {
      close()
      throw unreadable(name, error)
    })
  if (single.files.length > 0) sets.push(single)
  return {
    sets,
    /** Notes about what is in folders and was not opened. */
    notOpened,
    progress,
    fingerprint: names.includes(STDIN) ? undefined : fingerprint,
    [Symbol.dispose]: close,
  }
}

const ZIP = /\.zip$/i

/** Waiting for a pipe's writer may never end, and some devices have no end. */
const IRREGULAR = 'pipes, devices, sockets, broken links and links to folders, which are not read'

/** Matches names of files that operating systems, editors and earlier imports leave. */
const UNWANTED = /^\.|^__MACOSX$|\.sluice-(checkpoint(\.new)?|part)$/

/**
 * Matches names of mail folders: Maildir++ names a subfolder `.Sent`, and KMail names a folder of
 * subfolders `.inbox.directory`.
 */
const MAIL_FOLDER = /(^|\/)\.(?=[^/]+\/(cur|new|tmp)\/|[^/]+\.directory\/)/g

function isWanted(path: string): boolean {
  const names = path.replace(MAIL_FOLDER, '$1').split('/')
  return !names.some((name) => UNWANTED.test(name) || REJECTED_NAME.test(name))
}

/** What people and programs hide, but not what a Macintosh adds to each folder. */
const HIDDEN = /(^|\/)\.(?!_|DS_Store$)[^/]*(\/|$)/

/** Notes what is hidden: it may have messages, such as issues of the repository `.github`. */
function notesOnHidden(path: string): Noted[] {
  const isHidden = HIDDEN.test(path) && !path.startsWith('__MACOSX/')
  return isHidden ? [skipped('hidden files and folders, which are not read', { path })] : []
}

function isWantedFolder(folder: string, path: string): boolean {
  return isWanted(`${path}/`) || ['cur', 'new'].some((name) => existsSync(join(folder, path, name)))
}

type FolderFile = RawFile & { changedAt: number }

interface FolderContents {
  files: FolderFile[]
  /** The paths of what is not a regular file. */
  others: string[]
  hidden: string[]
}

async function filesIn(
  folder: string,
  parent = '',
  found: FolderContents = { files: [], others: [], hidden: [] },
): Promise<FolderContents> {
  const entries = await readdir(join(folder, parent), { withFileTypes: true })
  // A resumed import needs the same order on each machine.
  for (const entry of entries.sort((a, b) => (a.name < b.name ? -1 : 1))) {
    const path = parent === '' ? entry.name : `${parent}/${entry.name}`
    if (entry.isDirectory() ? !isWantedFolder(folder, path) : !isWanted(path))
      found.hidden.push(path)
    else if (entry.isDirectory()) await filesIn(folder, path, found)
    else {
      const onDisk = join(folder, path)
      const facts = await stat(onDisk).catch(unlessBroken)
      const open = () => createReadStream(onDisk)
      if (!facts?.isFile()) found.others.push(path)
      else found.files.push({ path, bytes: facts.size, changedAt: facts.mtimeMs, onDisk, open })
    }
  }
  return found
}

const BROKEN_LINK = new Set(['ENOENT', 'ELOOP', 'ENOTDIR'])

function unlessBroken(error: unknown): undefined {
  if (!BROKEN_LINK.has(Object(error).code)) throw error
  return undefined
}

/** The length of the longest magic number of a compressed file. */
const MAGIC_BYTES = 4

async function openStdin(stdin: Readable, reading: Reading): Promise<InputFile> {
  // Standard input may be silent for hours, but an interrupted import must end.
  reading.stopping.addEventListener('abort', () => stdin.destroy())
  const chunks: AsyncIterableIterator<Buffer> = stdin[Symbol.asyncIterator]()
  let beginning = Buffer.alloc(0)
  while (beginning.length < MAGIC_BYTES) {
    const { value, done } = await chunks.next()
    if (done) break
    beginning = Buffer.concat([beginning, value])
  }
  if (beginning.length === 0) throw new UserError('Standard input is empty.')
  const whole = async function* () {
    yield beginning
    yield* chunks
  }
  const raw = { path: STDIN_NAME, open: () => Readable.from(whole(), { objectMode: false }) }
  const compression = COMPRESSIONS.find(({ magic }) =>
    beginning.subarray(0, magic.length).equals(magic),
  )
  return replayable(STDIN_NAME, readCounted(raw, reading, compression))
}

/** Formats may look at this number of bytes of standard input, several times. */
const REPLAYED_BYTES = 1024 * 1024

/** Creates a file whose beginning can be read several times, but the rest only once. */
function replayable(path: string, openOnce: () => AsyncIterable<Buffer>): InputFile {
  const kept: Buffer[] = []
  let source: AsyncIterator<Buffer> | undefined
  let bytes = 0
  return {
    path,
    isNamed: true,
    async *open() {
      source ??= openOnce()[Symbol.asyncIterator]()
      if (bytes > REPLAYED_BYTES)
        throw new UserError(`${path} can be read only once. Save it to a file.`)
      yield* kept
      // Not by `for await`, which would end the source when a reader of its beginning stops.
      for (let next = await source.next(); !next.done; next = await source.next()) {
        bytes += next.value.length
        if (bytes > REPLAYED_BYTES) kept.length = 0
        else kept.push(next.value)
        yield next.value
      }
    },
  }
}
