// POST /sources:batch: accepts many threads, each on its own, and answers with the result of each.
// GET /batches/{id}: the progress of such an import. POST /sources:delete takes the same way.
import { type FileHandle, mkdtemp, open, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  createReferenceParsers,
  type ImportProgressAnswer,
  NDJSON,
  type ParsedArray,
  type ParsedReference,
  PROBLEMS,
  parseDeleteByIdQuery,
} from '@sluice/contract'
import {
  type FoundImport,
  type ImportEnd,
  isJobId,
  newJobId,
  orUnavailable,
  sourceNameOf,
} from '@sluice/queue'
import type { ApiDeps } from '../api-deps.ts'
import {
  allowBody,
  bodyChunks,
  type Coding,
  checkContentLength,
  checkContentType,
  drainBody,
  endAfter,
  INFLATER_MEMORY,
  readBody,
} from '../body/read-body.ts'
import { roomFor, writeHead } from '../request/middleware.ts'
import {
  asProblem,
  CallerGoneError,
  jobFailed,
  ProblemError,
  problemBody,
  requestInvalid,
} from '../request/problem-error.ts'
import {
  type Answer,
  type Handler,
  parseQuery,
  type RequestContext,
  STREAMED,
} from '../request/request-context.ts'
import { type Budget, jsonAnswer, type ReadLimitDeps, readWithinLimits } from '../request/shares.ts'
import { IMPORT_ITEMS } from '../settings.ts'
import { chooseTenant, deletionOf } from '../sources/deletions.ts'
import {
  groupElements,
  groupLines,
  type ImportGroup,
  type ImportGroups,
  type ParsedItem,
  type ParseLine,
  refuseItem,
} from './group-items.ts'
import {
  enqueuePatiently,
  type ImportRun,
  newRun,
  storeGroups,
  storeRecorded,
} from './store-groups.ts'

interface PostedImport extends ImportRun {
  deps: ImportRun['deps'] &
    Pick<
      ApiDeps,
      'parser' | 'settings' | 'imports' | 'log' | 'stopping' | 'bodyBudget' | 'spillBudget'
    >
  context: RequestContext
  parseLine: ParseLine
  parseArray: (
    text: Buffer,
    options: { strict: boolean; maxItems: number },
  ) => ParsedArray<ParsedItem> | Promise<ParsedArray<ParsedItem>>
  store: (groups: ImportGroups, run: PostedImport) => AsyncIterable<string[]>
}

/**
 * The stages of an import: body → lines → groups of items (`group-items.ts`) → results
 * (`store-groups.ts`) → answer. Each stage pulls from the stage before it when it has room.
 */
export function postImport(deps: PostedImport['deps']): Handler {
  const { thread: parseLine, array: parseArray } = deps.parser
  return async (context) => {
    const run = { ...newRun(), deps, context, parseLine, parseArray, store: storeRecorded }
    const { groups, isLines } = await readGroups(run)
    if (context.prefer.respondAsync) return enqueueImport(groups, run)
    return isLines ? streamResults(groups, run) : collectResults(groups, run)
  }
}

/**
 * Bounds a line or an array of deletions. They are parsed in this thread, so a longer one would
 * block other requests.
 */
const REFERENCES_BYTES = 256 * 1024

/** POST /sources:delete. Its caller always waits, and it is not listed among the imports. */
export function postDeletions(given: PostedImport['deps']): Handler {
  const settings = {
    ...given.settings,
    bodyBytes: Math.min(given.settings.bodyBytes, REFERENCES_BYTES),
  }
  const deps = { ...given, settings }
  const parser = createReferenceParsers(settings)
  return async (context) => {
    chooseTenant(context, parseQuery(context, parseDeleteByIdQuery).tenant)
    const toItem = (parsed: ParsedReference): ParsedItem =>
      parsed.ok ? { ok: true, thread: deletionOf(context.tenant, parsed.source) } : parsed
    const summary = { received: 0, deleted: 0, absent: 0, failed: 0 }
    const run: PostedImport = {
      ...newRun(summary),
      deps,
      context,
      parseLine: (text) => toItem(parser.line(text)),
      parseArray(text, { maxItems }) {
        const parsed = parser.array(text, maxItems)
        return parsed.ok ? { ok: true, elements: parsed.elements.map(toItem) } : parsed
      },
      store: storeGroups,
    }
    const { groups, isLines } = await readGroups(run)
    return isLines ? streamResults(groups, run) : collectResults(groups, run)
  }
}

async function readGroups(run: PostedImport): Promise<{ groups: ImportGroups; isLines: boolean }> {
  const { mediaType, coding } = checkContentType(run.context.request, [NDJSON, 'application/json'])
  const isLines = mediaType === NDJSON
  return { groups: isLines ? readLines(run, coding) : await readArray(run, coding), isLines }
}

/** Bounds the bytes of an import's texts, threads and results in memory, apart from long lines. */
const IMPORT_MEMORY = 4 * 1024 * 1024
const CHUNK_MEMORY = 128 * 1024

/** Groups the lines of a body as they arrive. @throws {ProblemError} 413; 503 without memory. */
function readLines(run: PostedImport, coding: Coding): ImportGroups {
  const { deps, context, parseLine } = run
  const { importBytes, bodyBytes: lineBytes } = deps.settings
  const { request, signal: stop } = context
  const announced = checkContentLength(request, importBytes, 'importBytes')
  const inMemory = coding === 'identity' ? Math.min(announced, IMPORT_MEMORY) : IMPORT_MEMORY
  const base = CHUNK_MEMORY + inMemory + INFLATER_MEMORY[coding].fixed
  const reservation = deps.bodyBudget.reserve(context, base)
  allowBody(context)
  const chunks = bodyChunks(request, coding, { bytes: importBytes, limit: 'importBytes', stop })
  return groupLines(chunks, {
    context,
    parseLine,
    lineBytes,
    ensure: (bytes) => reservation.raise(base + bytes),
    isIdle: () => !context.prefer.respondAsync && run.jobs === 0,
  })
}

/**
 * Groups the elements of an array, which is read and parsed as a whole.
 * @throws {ProblemError} 413, 503, 400.
 */
async function readArray(
  { deps, context, parseArray }: PostedImport,
  coding: Coding,
): Promise<ImportGroups> {
  const text = await readBody(context, deps, coding)
  const textBytes = text.length // Parsing moves a large text to another thread, and empties it.
  const parsed = await parseArray(text, {
    strict: context.prefer.strict,
    maxItems: IMPORT_ITEMS.value,
  })
  const refused = parsed.ok
    ? parsed.elements.filter(({ ok }) => !ok).length / parsed.elements.length
    : 1
  context.chargedBytes += textBytes * refused
  if (!parsed.ok) throw requestInvalid(parsed)
  return groupElements(parsed.elements, context.requestId)
}

/**
 * Answers as soon as all groups are in Redis. If the import ends early, its problem has a Location
 * at which the caller can look up the groups that were enqueued.
 */
async function enqueueImport(groups: ImportGroups, run: PostedImport): Promise<Answer> {
  const { imports, confirmReplicated } = run.deps
  const { tenant, requestId, log } = run.context
  const id = newJobId()
  log.importId = id
  const location = `/batches/${id}`
  const enqueued = { received: 0, jobs: 0, failed: 0, refused: run.problems.kept }
  const by = run.context.key?.keyId ?? ''
  const open = async (end: { ended?: ImportEnd } = {}) => {
    await run.context.checkKey?.()
    await imports.open(id, { tenant, by, ...enqueued, ...end })
  }
  try {
    for await (const { items, threads } of groups) {
      if (threads.length > 0) {
        const places = items.flatMap((item) => ('thread' in item ? [item.index] : []))
        const job = { threads, retained: false, import: { id, places } }
        await enqueuePatiently(
          job,
          newJobId(threads[0] && sourceNameOf(threads[0]).externalId),
          run,
        )
        enqueued.jobs += 1
      }
      enqueued.received += items.length
      enqueued.failed += items.length - threads.length
      for (const item of items) if ('result' in item) run.problems.keep(item)
    }
  } catch (error) {
    if (enqueued.received === 0) throw error
    // The caller needs the problem that ended its import even if Redis is unavailable, so that
    // nothing can be looked up.
    await open({ ended: 'cut' }).catch(() => {})
    const problem = asProblem(error)
    if (problem === undefined) throw error
    throw new ProblemError(problem.code, problem.members, { ...problem.headers, location })
  }
  // All jobs are in Redis, so a failure from here on must not be reported as a refusal.
  const found = await open()
    .then(() => confirmReplicated(id, run.context.startedAt))
    .then(() => imports.find(id))
    .catch(() => undefined)
  if (found === undefined) throw new ProblemError('acceptance_unknown', {}, { location })
  const headers = { location, 'preference-applied': 'respond-async' }
  return { status: 202, body: importProgress(id, found, requestId), headers }
}

/** Answers an array with one object, once all items are done. */
async function collectResults(groups: ImportGroups, run: PostedImport): Promise<Answer> {
  const results: string[] = []
  for await (const ofGroup of run.store(groups, run)) results.push(...ofGroup)
  run.context.log.summary = run.summary
  return {
    status: 200,
    content: `{"results":[${results.join(',')}],"summary":${JSON.stringify(run.summary)}}`,
  }
}

/**
 * After `graceOver` has aborted, the rest of a body is drained for this time. Connections are cut
 * 500 ms after the abort.
 */
const LAST_DRAIN_MS = 200

/**
 * If the rest of a body is too large or too slow to be drained, the caller has this time to read
 * the answer.
 */
const LAST_READ_MS = 30_000

/**
 * Answers with a line for each item, as soon as the item and all items before it are done. The last
 * line is a summary.
 */
async function streamResults(groups: ImportGroups, run: PostedImport): Promise<typeof STREAMED> {
  const { deps, context, summary } = run
  const { request, response, signal } = context
  const answer = createSpillingAnswer(context, deps.spillBudget)
  let draining: Promise<boolean> | undefined
  /**
   * Drains the rest of the body, once. If the grace time is already over, drains only for a moment.
   */
  function drain(): Promise<boolean> {
    draining ??= drainBody(request, signal.aborted ? LAST_DRAIN_MS : undefined)
    return draining
  }
  let lastRead: NodeJS.Timeout | undefined
  try {
    for await (const results of run.store(endWithProblem(groups, context, drain), run)) {
      if (!response.headersSent)
        writeHead(deps, context, { status: 200, headers: { 'content-type': NDJSON } })
      await answer.write(results.map((result) => `${result}\n`).join(''))
    }
    context.log.summary = summary
    await answer.write(`${JSON.stringify({ summary })}\n`)
    void drain().then((isComplete) => {
      if (!isComplete) lastRead = setTimeout(() => response.destroy(), LAST_READ_MS)
    })
    await answer.end()
    await endAfter(drain(), response)
  } finally {
    clearTimeout(lastRead)
    await answer.end()
  }
  return STREAMED
}

/**
 * Adds a last item that stands for the rest of a body which can't be read. Begins to drain the rest
 * immediately, because some callers read nothing until they have sent everything.
 */
async function* endWithProblem(
  groups: ImportGroups,
  { path, requestId }: RequestContext,
  drain: () => void,
): AsyncGenerator<ImportGroup> {
  let index = 0
  try {
    for await (const group of groups) {
      index += group.items.length
      yield group
    }
  } catch (error) {
    const problem = asProblem(error)
    if (problem === undefined || index === 0) throw error
    drain()
    const items = [refuseItem({ index }, problem, requestId, undefined, path)]
    yield { items, threads: [], bytes: 0, resultBytes: 0 }
  }
}

const PIECE_BYTES = 256 * 1024

// The bound of unread bytes: a constant, plus UNREAD_PER_BYTE for each byte that the caller sent.
// An item of 2 bytes (`1,`) is answered by about 340 bytes, so a constant alone would cut callers
// that send many faulty items.
const UNREAD_BYTES = 64 * 1024 * 1024
const UNREAD_PER_BYTE = 16

/**
 * Writes to a response while its reader keeps up. Otherwise writes to a file, which is copied to
 * the response as the reader continues, because a reader may not begin before it has sent
 * everything. The server cuts the connection of a reader that stops reading for too long.
 * @param space bounds the files of all answers.
 */
export function createSpillingAnswer(
  { request, response, tenant }: Pick<RequestContext, 'request' | 'response' | 'tenant'>,
  space: Budget,
) {
  let file: FileHandle | undefined
  let written = 0
  let readTo = 0
  let taken = 0
  let pumping: Promise<void> | undefined

  function release(): void {
    space.release(tenant, taken)
    taken = written = readTo = 0
  }

  async function spill(bytes: Buffer): Promise<void> {
    file ??= await openUnnamedFile()
    // Everything was read, so empty the file: otherwise it would grow for ever.
    if (readTo === written && written > 0) {
      await file.truncate()
      release()
    }
    const isTooMuch =
      written - readTo + bytes.length > UNREAD_BYTES + UNREAD_PER_BYTE * request.socket.bytesRead
    if (isTooMuch || !space.take(tenant, bytes.length))
      throw new CallerGoneError('too much of the answer was not read')
    taken += bytes.length
    await file.appendFile(bytes)
    written += bytes.length
    pumping ??= pump(file)
  }

  async function pump(opened: FileHandle): Promise<void> {
    try {
      await roomFor(response)
      while (readTo < written && !response.destroyed) {
        const piece = Buffer.allocUnsafe(Math.min(PIECE_BYTES, written - readTo))
        const { bytesRead } = await opened.read(piece, { position: readTo })
        if (bytesRead === 0) throw new Error('the file is shorter than what was written')
        readTo += bytesRead
        if (!response.write(piece.subarray(0, bytesRead))) await roomFor(response)
      }
    } catch {
      // The reader must see that its answer is incomplete.
      response.destroy()
    } finally {
      pumping = undefined
    }
  }

  return {
    /**
     * Writes without waiting for the reader.
     * @throws {CallerGoneError} if too much is unread. The connection is then cut.
     */
    async write(text: string): Promise<void> {
      if (response.destroyed) return
      if (pumping === undefined && !response.writableNeedDrain) return void response.write(text)
      try {
        await spill(Buffer.from(text))
      } catch (error) {
        response.destroy()
        throw error
      }
    },

    /**
     * Resolves when the file has been copied to the response, or the reader has disconnected.
     * Closes the file.
     */
    async end(): Promise<void> {
      while (pumping !== undefined) await pumping
      const opened = file
      file = undefined
      await opened?.close()
      release()
    },
  }
}

/**
 * Opens a file that no other user can read, and removes its name immediately, so that the file
 * disappears when the process ends.
 */
async function openUnnamedFile(): Promise<FileHandle> {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-import-'))
  const file = await open(join(folder, 'unread'), 'ax+', 0o600)
  await rm(folder, { recursive: true })
  return file
}

/** GET /batches/{id}: the progress of an import whose caller does not wait. */
export function getImport(deps: ReadLimitDeps & Pick<ApiDeps, 'imports'>): Handler {
  return async (context, params) => {
    const { tenant, requestId, log } = context
    const id = String(params.id)
    log.importId = id
    if (!isJobId(id)) throw new ProblemError('import_unknown')
    return readWithinLimits(deps, context, async () => {
      const found = await orUnavailable(deps.imports.find(id, tenant))
      if (found === undefined) throw new ProblemError('import_unknown')
      return jsonAnswer(deps, context, importProgress(id, found, requestId))
    })
  }
}

function importProgress(
  id: string,
  { done, isWaitedFor, ended, received, counts, problems, waitsFor }: FoundImport,
  requestId: string,
): ImportProgressAnswer {
  return {
    id,
    state: !done ? 'active' : isWaitedFor && ended === 'cut' ? 'stopped' : 'completed',
    summary: { received, ...counts },
    ...(waitsFor && { waitsFor: PROBLEMS[waitsFor].title }),
    problems: problems.map(({ refused, jobId, ...about }) => {
      return { ...about, problem: refused ?? problemBody(jobFailed(jobId), '/sources', requestId) }
    }),
  }
}
