// The guards of the write protocol: versions, tokens, sums, watermarks.
import { known, type Mutant, one, rare, unguardedBy } from './mutant.ts'

export const writeMutants: Mutant[] = [
  unguardedBy('opening', 'write/guarded-updates.ts', 'stored: before', 'stored: {}'),
  unguardedBy(
    'reserving',
    'write/guarded-updates.ts',
    'return { stored, document',
    'return { stored: marks.tokens ? {} : stored, document',
  ),
  unguardedBy(
    'writing quotes',
    'write/guarded-writes.ts',
    'threads.flatMap(({ plan }) => plan.quoteWrites)',
    'threads.flatMap(({ plan }) => plan.quoteWrites.map((write) => ({ ...write, ...(write.stored && { stored: {} }) })))',
  ),
  unguardedBy(
    'committing',
    'write/sum-sources.ts',
    'return { stored, document: { ...document, meta } }',
    'return { stored: {}, document: { ...document, meta } }',
  ),
  unguardedBy(
    'setting the epoch',
    'write/guarded-updates.ts',
    'return { stored, document',
    'return { stored: marks.epoch ? {} : stored, document',
  ),
  one(
    'a refused insert of a source counts as done',
    'write/guarded-writes.ts',
    'return duplicates.map(',
    "return name === 'sources' ? [] : duplicates.map(",
  ),
  one(
    'a refused insert of a quote counts as done',
    'write/guarded-writes.ts',
    'return duplicates.map(',
    "return name === 'quotes' ? [] : duplicates.map(",
  ),
  one(
    'a refused update counts as done',
    'write/guarded-updates.ts',
    'if (n === updates.length) return',
    'if (n >= 0) return',
  ),
  one(
    'a refused opening counts as done',
    'write/guarded-writes.ts',
    'return openings.filter(({ work }) => !refused.has(work.id))',
    'return openings',
  ),
  one(
    'refused quotes count as written',
    'write/guarded-writes.ts',
    'return threads.filter(({ plan }) => plan',
    'return threads.filter(({ plan }) => refused.size >= 0 || plan',
  ),
  one(
    'a refused commit counts as done',
    'write/sum-sources.ts',
    '(refused.has(document._id) ? [] : [document])',
    '(refused.size < 0 ? [] : [document])',
  ),
  one(
    'a refused recount counts as done',
    'write/sum-sources.ts',
    'left = await recountOnce(deps, left, writer, isRemovable)',
    'await recountOnce(deps, left, writer, isRemovable), (left = [])',
  ),
  one(
    'a thread with a token of its own requests is not summed',
    'write/tokens.ts',
    'isMine(work, token) || isStaleAndUnsummed(token)',
    'isStaleAndUnsummed(token)',
  ),
  one(
    'a stale token does not make a sum',
    'write/tokens.ts',
    'isStaleAndUnsummed(token) || isExpired(runtime, token)',
    'isExpired(runtime, token)',
  ),
  one(
    'a new cover is opened beside changed quotes',
    'write/guarded-updates.ts',
    '(toSum || isCoverBesideQuotes(round, before))',
    '(toSum)',
  ),
  one(
    'opening writes no token',
    'write/guarded-writes.ts',
    'if (token === undefined || (plan.quoteWrites.length === 0 && !toSum)) return before',
    'if (before) return before',
  ),
  one(
    'opening removes the tokens of others',
    'write/guarded-writes.ts',
    'return [...others, ...work',
    'return [...others.slice(0, 0), ...work',
  ),
  one(
    'opening does not move the totals',
    'write/guarded-writes.ts',
    '...totalsAfter(stored.source ?? plan.source.document, plan.quoteWrites),',
    '...(stored.source === undefined && totalsAfter(plan.source.document, plan.quoteWrites)),',
  ),
  one(
    'no check of epochs',
    'write/writer.ts',
    'new Set(opened.filter(({ id, epoch })',
    'new Set(opened.slice(0, 0).filter(({ id, epoch })',
  ),
  one(
    'a sum without a new epoch',
    'write/sum-sources.ts',
    'planMarks(source, { version: epoch, epoch })',
    'planMarks(source, { version: epoch })',
  ),
  one('the epoch is lost by a commit', 'write/sum-sources.ts', '...(epoch && { epoch }),', ''),
  one(
    'a commit keeps the totals in place of a sum',
    'write/sum-sources.ts',
    '{ ...document, ...(sums.get(stored._id) ?? NO_QUOTES) }',
    '{ ...(sums.get(stored._id) ?? NO_QUOTES), ...document }',
  ),
  one(
    'a sum removes the tokens of others',
    'write/tokens.ts',
    'filter((token) => !isRemovable(token) && !isExpired(runtime, token))',
    'filter(() => false)',
  ),
  one(
    'the watermark passes a batch that has not ended',
    'write/writer.ts',
    'while (state.ended.delete(state.contiguous + 1)) state.contiguous += 1',
    'state.contiguous = Math.max(batch, state.contiguous)',
  ),
  rare(
    200_000,
    one(
      'a batch that has ended counts as settled',
      'write/read-stored.ts',
      'watermarks.remember(state.name, state.watermark)',
      'watermarks.remember(state.name, state.contiguous)',
    ),
  ),
  one('a failed batch ends', 'write/store-batch.ts', 'writer.abandon(one)', 'writer.end(one)'),
  one(
    'a batch ends before its refused threads are stored',
    'write/store-batch.ts',
    'writer.begin(planned.map(({ work }) => work))',
    'writer.begin([])',
  ),
  known(
    one('a refused opening counts as not written', 'write/further-rounds.ts', 'tokens.get(id)?.some(isOwn)', 'false'),
  ),
  rare(
    60_000,
    one(
      'a batch ends by a read that no majority has',
      'write/further-rounds.ts',
      "commands.find('sources', [...ids], 'majority')",
      "commands.find('sources', [...ids])",
    ),
  ),
  one(
    'a thread that was opened is left to another process',
    'write/store-batch.ts',
    '(!isExcluded || work.mayHaveChanged)',
    '!isExcluded',
  ),
  one(
    'a batch does not check the sources that it opened',
    'write/store-batch.ts',
    'isFinal && plan',
    'isFinal && false && plan',
  ),
  rare(
    60_000,
    one(
      'a paused process goes on',
      'write/guarded-writes.ts',
      'runtime.monotonic() - openedAt > WRITE_WITHIN_MS',
      'false',
    ),
  ),
  one(
    'outcomes of refused rounds are forgotten',
    'write/further-rounds.ts',
    'work.requests.map((request) => ({ ...request, redelivered: true }))',
    'work.requests',
  ),
  rare(
    100_000,
    one(
      'a recount removes tokens of batches that have not ended',
      'write/writer-state.ts',
      'writer === state.name && batch <= upTo',
      'writer === state.name',
    ),
  ),
  one('a token expires at once', 'write/tokens.ts', '>= EXPIRED_MS', '>= 0'),
]
