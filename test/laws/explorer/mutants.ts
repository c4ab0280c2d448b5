// The guards of the store, each removed by an edit of a file of packages/store/src.

export interface Mutant {
  name: string
  edits: { file: string; find: string; replace: string }[]
}

const edit = (file: string, find: string, replace: string) => ({ file, find, replace })

/** An update whose `read` is absent takes effect whatever the version is. */
const unguarded = edit(
  'write-threads.ts',
  "q: { _id: write.id, 'meta.version': write.read }",
  "q: { _id: write.id, ...(write.read && { 'meta.version': write.read }) }",
)

const one = (name: string, file: string, find: string, replace: string): Mutant => ({
  name,
  edits: [edit(file, find, replace)],
})

const unguardedBy = (name: string, file: string, find: string, replace: string): Mutant => ({
  name: `no version filter for ${name}`,
  edits: [unguarded, edit(file, find, replace)],
})

export const mutants: Mutant[] = [
  unguardedBy(
    'opening',
    'write-threads.ts',
    '{ id: source._id, read, replace: source }',
    '{ id: source._id, read: undefined, replace: source }',
  ),
  unguardedBy('reserving', 'write-threads.ts', 'read: source.meta.version, update', 'read: undefined, update'),
  unguardedBy(
    'writing quotes',
    'write-threads.ts',
    'read: stored.meta.version, replace: document',
    'read: undefined, replace: document',
  ),
  unguardedBy(
    'committing',
    'commit-sources.ts',
    'read: threads[at]?.source.meta.version ?? version',
    'read: undefined',
  ),
  unguardedBy('reserving for a recount', 'recount.ts', 'read: free[at]?.meta.version ?? version', 'read: undefined'),
  unguardedBy('setting the epoch', 'recount.ts', 'read: meta.version, update', 'read: undefined, update'),
  unguardedBy('writing a recount', 'recount.ts', 'read: source.meta.version, update', 'read: undefined, update'),
  one(
    'a refused insert of a source counts as done',
    'write-threads.ts',
    'for (const at of duplicates) refused',
    "if (name === 'quotes') for (const at of duplicates) refused",
  ),
  one(
    'a refused insert of a quote counts as done',
    'write-threads.ts',
    'for (const at of duplicates) refused',
    "if (name === 'sources') for (const at of duplicates) refused",
  ),
  one('a refused update counts as done', 'write-threads.ts', 'if (n === updates.length) return', 'if (n >= 0) return'),
  one(
    'a refused opening counts as done',
    'write-threads.ts',
    'return openings.filter(({ round }) => !refused.has(round.work.id))',
    'return openings',
  ),
  one(
    'refused quotes count as written',
    'store-batch.ts',
    'const written = opened.filter(({ round }) => isWritten(round, refusedQuotes))',
    'const written = opened',
  ),
  one(
    'a refused commit counts as done',
    'commit-sources.ts',
    'sources.filter(({ _id }) => !refused.has(_id))',
    'sources',
  ),
  one('a refused recount counts as done', 'recount.ts', 'left = refused', 'left = []'),
  one(
    'a thread with a token of its own requests is not summed',
    'tokens.ts',
    'isMine(work, token) || isStaleAndUnsummed(token)',
    'isStaleAndUnsummed(token)',
  ),
  one(
    'a stale token does not make a sum',
    'tokens.ts',
    'isStaleAndUnsummed(token) || isExpired(runtime, token)',
    'isExpired(runtime, token)',
  ),
  one('a sum does not exclude others', 'tokens.ts', 'token.excludes === true && !isStale', 'false && !isStale'),
  one(
    'a new cover is opened beside changed quotes',
    'write-threads.ts',
    "isNewCover && quoteWrites.length > 0 ? 'cover' : 'final'",
    "isNewCover && quoteWrites.length > 0 ? 'final' : 'final'",
  ),
  one(
    'opening writes no token',
    'write-threads.ts',
    "if (token === undefined || (quoteWrites.length === 0 && kind !== 'sum')) return before",
    'if (before) return before',
  ),
  one(
    'opening removes the tokens of others',
    'write-threads.ts',
    'return [...others, ...work',
    'return [...others.slice(0, 0), ...work',
  ),
  one(
    'opening does not move the totals',
    'write-threads.ts',
    '...totalsAfter(stored.source ?? plan.source.document, quoteWrites),',
    '...(stored.source === undefined && totalsAfter(plan.source.document, quoteWrites)),',
  ),
  one('no check of epochs', 'writer.ts', 'if (missed.size === 0) return', 'if (missed.size >= 0) return'),
  one('no writer is asked to check epochs', 'recount.ts', 'if (names.length > 0)', 'if (names.length < 0)'),
  one('a watermark passes a request to check epochs', 'writer.ts', 'q: { _id: name, asked }', 'q: { _id: name }'),
  one(
    'a batch that had begun forgets a request to check epochs',
    'writer.ts',
    'state.askedUpTo = state.begun',
    'state.askedUpTo = state.contiguous',
  ),
  one(
    'a sum without a new epoch',
    'recount.ts',
    "$set: { 'meta.version': epoch, 'meta.epoch': epoch }",
    "$set: { 'meta.version': epoch }",
  ),
  one('the epoch is lost by a commit', 'commit-sources.ts', '...(epoch && { epoch }),', ''),
  one(
    'a commit moves totals by a difference in place of a sum',
    'commit-sources.ts',
    'sums.get(work.id) ?? totalsAfter',
    'totalsAfter',
  ),
  one(
    'a sum removes the tokens of others',
    'tokens.ts',
    'filter((token) => !isRemovable(token) && !isExpired(runtime, token))',
    'filter(() => false)',
  ),
  one(
    'the watermark passes a batch that has not ended',
    'writer.ts',
    'while (state.ended.delete(state.contiguous + 1)) state.contiguous += 1',
    'state.contiguous = Math.max(batch, state.contiguous)',
  ),
  one(
    'a batch that has ended counts as settled',
    'writer.ts',
    'await settle().catch(() => {})',
    'for (const token of tokens) if (hasEnded(token)) watermarks.remember(token.writer, token.batch)',
  ),
  one('a failed batch keeps its name', 'writer.ts', 'if (current?.name === writer) current = undefined', ''),
  one(
    'a failed batch ends',
    'store-batch.ts',
    'if (batch !== undefined) writer.abandon(batch)',
    'if (batch !== undefined) writer.end(batch, [])',
  ),
  one(
    'a batch ends before its refused threads are stored',
    'store-batch.ts',
    'if (isLeftOpen) unfinished',
    'if (false) unfinished',
  ),
  one(
    'a refused opening counts as not written',
    'store-batch.ts',
    '(read.source !== undefined || open.some',
    '(open.some',
  ),
  one(
    'a thread that was opened is left to another process',
    'store-batch.ts',
    'work.mayHaveToken && !ready.some',
    'false && !ready.some',
  ),
  one(
    'a batch does not check the sources that it opened',
    'store-batch.ts',
    '.filter(isFinal)\n    .filter(writesQuotes)',
    '.filter(() => false)',
  ),
  one('a paused process goes on', 'write-threads.ts', 'runtime.monotonic() - openedAt > WRITE_WITHIN_MS', 'false'),
  one('a token expires at once', 'tokens.ts', '>= EXPIRED_MS', '>= 0'),
  one('a cover while others write', 'repeats.ts', 'if (source.meta.tokens !== undefined) return undefined', ''),
  one(
    'a cover over quotes that were not read',
    'repeats.ts',
    'if (drafts.filter((draft) => draft.stored !== undefined).length !== source.quoteCount) return undefined',
    '',
  ),
  one(
    'a cover that says more than the merge',
    'repeats.ts',
    'return drafts.every(isCovered) ? cover : undefined',
    'return isCovered ? cover : undefined',
  ),
  one('a cover below the stored one', 'repeats.ts', '|| cover <= (source.meta.cover ?? 0)) return', ') return'),
  one(
    'a quote written beside a new cover does not account for it',
    'plan.ts',
    '.map((draft) => withOwnCover(cover, draft))',
    '',
  ),
  one('a new quote does not account for the cover', 'drafts.ts', '...(cover > 0 && { cover }),', ''),
  one(
    'a merged quote does not account for the cover',
    'merge.ts',
    '...(cover > 0 && { cover: Math.max(cover, before.meta.cover ?? 0) }),',
    '',
  ),
  one(
    'a cover does not count for a field',
    'merge.ts',
    'return cover > (meta.cover ?? 0) ? Math.max(own, cover) : own',
    'return own',
  ),
  one(
    'a cover counts twice',
    'merge.ts',
    'return cover > (meta.cover ?? 0) ? Math.max(own, cover) : own',
    'return Math.max(own, cover)',
  ),
  one('a repeat while others write', 'repeats.ts', '|| tokens !== undefined) return false', ') return false'),
  one('a repeat of an older request', 'repeats.ts', 'return request.stamp > Math.max(stamp, cover)', 'return true'),
  one(
    'a repeat among several requests',
    'repeats.ts',
    'request === undefined || requests.length > 1) return false',
    'request === undefined) return false',
  ),
  one(
    'a digest while others write',
    'plan.ts',
    '|| stored?.meta.tokens !== undefined) return undefined',
    ') return undefined',
  ),
  one(
    'a digest of one request among several',
    'plan.ts',
    'if (request?.digest === undefined || requests.length > 1 ||',
    'if (request?.digest === undefined ||',
  ),
  one(
    'a digest of an older request',
    'plan.ts',
    'if (source.document.meta.stamp !== request.stamp) return undefined',
    '',
  ),
  one(
    'a digest beside older fields',
    'plan.ts',
    'stamp !== request.stamp || stamps !== undefined || cover > request.stamp',
    'stamp !== request.stamp || cover > request.stamp',
  ),
  one(
    'a digest beside quotes of other requests',
    'plan.ts',
    'stamp !== request.stamp || stamps !== undefined || cover > request.stamp',
    'stamps !== undefined || cover > request.stamp',
  ),
  one(
    'a digest beside a newer cover',
    'plan.ts',
    'stamp !== request.stamp || stamps !== undefined || cover > request.stamp',
    'stamp !== request.stamp || stamps !== undefined',
  ),
  one(
    'a digest of a part of the thread',
    'plan.ts',
    'return known === (stored?.quoteCount ?? 0) ? request.digest : undefined',
    'return known >= 0 ? request.digest : undefined',
  ),
  one(
    'a reserved source keeps its digest',
    'write-threads.ts',
    "$set: { 'meta.version': version, 'meta.tokens': tokens }, $unset: { 'meta.digest': '' }",
    "$set: { 'meta.version': version, 'meta.tokens': tokens }",
  ),
  one(
    'a recounted source keeps its digest',
    'recount.ts',
    "'meta.tokens': tokens }, $unset: { 'meta.digest': '' }",
    "'meta.tokens': tokens }",
  ),
  one('an older value wins', 'merge.ts', 'if (stamp <= (stamps[name] ?? Number.NEGATIVE_INFINITY)) continue', ''),
  one(
    'any given text counts as the stored one',
    'drafts.ts',
    '=== true && textDigest === textDigestOf(text)',
    '!== undefined',
  ),
  one('a stored text that is newer counts as replaced', 'read-quotes.ts', 'one.stamp > stamp', 'one.stamp > 0'),
  one(
    'a cover does not count for a text that is not read',
    'read-quotes.ts',
    "stampOfQuoteField(quote, 'text', cover)",
    "stampOfQuoteField(quote, 'text', cover * 0)",
  ),
  one(
    'a changed text keeps the digest of the one before',
    'store-batch.ts',
    'version, textDigest: textDigestOf(document.text) }',
    'version, textDigest: document.meta.textDigest ?? textDigestOf(document.text) }',
  ),
]
