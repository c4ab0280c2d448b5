// The guards of deletions: marks, what is left of quotes, when a deletion has ended.
import { known, type Mutant, one, unguardedBy } from './mutant.ts'

export const deletionMutants: Mutant[] = [
  unguardedBy(
    'marking',
    'write/delete-sources.ts',
    '...(stored && { stored })',
    '...(stored && { stored: {} })',
  ),
  one(
    'a deleted request is merged',
    'merge/merge.ts',
    'request.stamp <= deletedUpTo(before)',
    'request.stamp <= 0',
  ),
  one('a later post removes the mark', 'merge/drafts.ts', '...(deletion && { deletion }),', ''),
  known(one('a later post removes the epoch', 'merge/drafts.ts', '...(epoch && { epoch }),', '')),
  one(
    'a request stores a deleted quote',
    'merge/merge.ts',
    'request.stamp <= deletedUpTo(stored.source, _id)',
    'request.stamp <= 0',
  ),
  one(
    'a digest of a request with a deleted quote',
    'merge/merge.ts',
    'request.quotes.some(({ names }) => !quotes.has(names._id))',
    'request.quotes.length < 0',
  ),
  one(
    'a deletion replaces the mark of one that has not ended',
    'write/delete-sources.ts',
    'last?.before ? last.request : id',
    'last?.before && last.request.length < 0 ? last.request : id',
  ),
  one(
    'a mark counts for another tenant',
    'deletions.ts',
    '...pickDeleted(deletedBy(tenant, source))',
    '...pickDeleted(deletion)',
  ),
  one(
    'a tombstone forgets the deletion of another tenant',
    'write/delete-sources.ts',
    '...(others && { others }),',
    '',
  ),
  one(
    'a deletion keeps the digest',
    'deletions.ts',
    '...(cover !== undefined && { cover }),',
    '...(cover !== undefined && { cover }), ...(source.meta.digest && { digest: source.meta.digest }),',
  ),
  one(
    'a deletion keeps older fields of the source',
    'deletions.ts',
    '(name) => stampOfField(source, name, 0),',
    '(name) => stampOfField(source, name, 0) + deletion.stamp,',
  ),
  one(
    'merges see deleted quotes',
    'write/read-stored.ts',
    'isMarked ? seenQuote({ ...stored, text: REPLACED }, source) : stored',
    'isMarked || !isMarked ? stored : seenQuote({ ...stored, text: REPLACED }, source)',
  ),
  one(
    'a sum removes nothing',
    'write/sum-sources.ts',
    'await removeDeleted(deps, sources)',
    'sources ?? (await removeDeleted(deps, sources))',
  ),
  known(
    one(
      'a quote stored after a deletion is left',
      'write/tokens.ts',
      'work.mayHaveQuotes && deletion !== undefined',
      'work.refusals < 0 && deletion !== undefined',
    ),
  ),
  one(
    'a sum counts deleted quotes',
    'write/sum-sources.ts',
    'sumQuotes(ids, { marked })',
    'sumQuotes(ids, { marked: marked.slice(0, 0) })',
  ),
  known(
    one(
      'a removal is not guarded by stamps',
      'write/sum-sources.ts',
      'removeQuotes(source._id, ids, upTo)',
      'removeQuotes(source._id, ids, upTo * Number.MAX_SAFE_INTEGER)',
    ),
  ),
  one(
    'a refused removal counts as done',
    'write/sum-sources.ts',
    'return removed === dead.length && refused.size === 0',
    'return removed >= 0',
  ),
  known(
    one(
      'a cover of after the deletion counts for late quotes',
      'deletions.ts',
      'stampOfField(quote, name, counts)',
      "stampOfField(quote, name, Reflect.get(source?.meta ?? {}, 'cover') ?? 0)",
    ),
  ),
  one(
    'a cover of before the deletion does not count',
    'deletions.ts',
    'stampOfField(quote, name, counts)',
    'stampOfField(quote, name, counts * 0)',
  ),
  one(
    'a quote that is left keeps its position',
    'deletions.ts',
    'movedTo(first, quote.position)',
    'quote.position',
  ),
  one(
    'a deletion is answered before it has ended',
    'write/delete-sources.ts',
    'if (deletion?.before) return undefined',
    '',
  ),
  one(
    'a deletion is answered by a mark that no majority has',
    'write/delete-sources.ts',
    "commands.find('sources', toConfirm, 'majority')",
    "commands.find('sources', toConfirm)",
  ),
  known(
    one(
      'deletions of before and after a cover share a mark',
      'write/delete-sources.ts',
      'stamp > cover',
      'stamp > 0',
    ),
  ),
  one(
    'a redacted quote keeps its speaker',
    'merge/drafts.ts',
    'values: REDACTED,',
    "values: { text: '[erased]' },",
  ),
  one(
    'a redaction keeps the digest',
    'merge/merge.ts',
    'digestToKeep(stored, requests, plan)',
    'requests.some((one) => one.redacts) ? stored.source?.meta.digest : digestToKeep(stored, requests, plan)',
  ),
  one(
    'an older deletion replaces a newer one',
    'write/delete-sources.ts',
    'deleted.stamp >= stamp',
    'deleted.stamp < 0',
  ),
  one(
    'a sum leaves the token of the deletion that it ends',
    'write/sum-sources.ts',
    'isOwn(token) || ended.has(token.request)',
    'isOwn(token) || (ended.size < 0)',
  ),
]
