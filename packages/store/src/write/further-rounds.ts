// The rounds of a batch after its first: for threads that another process wrote meanwhile, or sums although the batch
// opened them; and for threads that need no write, which are read again with majority.
import type { OpenThread, ThreadRound, WriterToken } from '../documents.ts'
import { type ReadDeps, type ReadThread, readThreads } from './read-stored.ts'
import type { UnendedBatch } from './writer.ts'

/** Workers that write one thread refuse each other's writes at times. More refusals mean a fault. */
const MAX_REFUSALS = 100
/** The pause before another round is random. Its bound doubles each round, up to this. */
const MAX_BACK_OFF_MS = 100

/** Reads threads again after the n-th round. Removes threads from a batch if their sources lack its token. */
export async function readAgain(
  deps: ReadDeps & { unended: Iterable<UnendedBatch> },
  left: readonly ReadThread[],
  round: number,
): Promise<ReadThread[]> {
  const { runtime } = deps
  if (round > 1) await runtime.delay(runtime.random() * Math.min(2 ** round, MAX_BACK_OFF_MS))
  const works = left.map(({ work }) => work)
  const read = await readThreads(deps, works)
  await dropUnopened(deps, [...deps.unended])
  return read
}

/**
 * Removes threads from a batch if their sources lack its token, which a refused update leaves there if it took effect
 * and was then overwritten. Reads with majority: a write that removed the token might be rolled back.
 */
async function dropUnopened({ commands }: ReadDeps, unended: readonly UnendedBatch[]): Promise<void> {
  const ids = new Set(unended.flatMap(({ left }) => left.map(({ id }) => id)))
  const found = await commands.find('sources', [...ids], 'majority')
  const tokens = new Map(found.map(({ _id, meta }) => [_id, meta.tokens ?? []]))
  for (const one of unended) {
    const isOwn = ({ writer, batch }: WriterToken) => writer === one.batch.writer && batch === one.batch.batch
    one.left = one.left.filter(({ id }) => tokens.get(id)?.some(isOwn))
    for (const work of one.left) work.mayHaveChanged = true
  }
}

/** Prepares a refused thread for another round. */
export function noteRefused({ work, stored, plan }: ThreadRound, open: readonly OpenThread[], toSum: boolean): void {
  work.refusals += 1
  if (work.refusals === MAX_REFUSALS) throw new Error(`other processes won thread ${work.id} ${MAX_REFUSALS} times`)
  const isOpened = open.some((thread) => thread.work === work)
  // If a refused insert took effect after all, `meta.insertedBy` names the request, and the outcome is right.
  if (!isOpened && stored.source === undefined) return
  // A refused update may have taken effect and been overwritten since, so the requests count as delivered again.
  work.requests = work.requests.map((request) => ({ ...request, redelivered: true }))
  // If a refused opening left a token, `dropUnopened` finds it after the next read. An opening without a token leaves
  // no trace, so the thread may have changed.
  work.mayHaveChanged ||= isOpened || !(toSum || plan.quoteWrites.length > 0)
}
