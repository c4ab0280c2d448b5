// The guards of the merge: covers, repeats, digests, positions, texts that are not read.
import { known, type Mutant, one, rare } from './mutant.ts'

export const mergeMutants: Mutant[] = [
  rare(
    30_000,
    one(
      'a cover while others write',
      'merge/merge.ts',
      'if (source.meta.tokens !== undefined) return undefined',
      '',
    ),
  ),
  one(
    'a cover over quotes that were not read',
    'merge/merge.ts',
    'if (drafts.filter((draft) => draft.stored !== undefined).length !== source.quoteCount)\n    return undefined',
    '',
  ),
  one(
    'a cover that says more than the merge',
    'merge/merge.ts',
    'return drafts.every(isCovered) ? cover : undefined',
    'return isCovered ? cover : undefined',
  ),
  one(
    'a quote written beside a new cover does not account for it',
    'merge/merge.ts',
    '.map((draft) => withOwnCover(cover, draft))',
    '',
  ),
  one(
    'a new quote does not account for the cover',
    'merge/drafts.ts',
    '...(cover > 0 && { cover })',
    '',
  ),
  one(
    'a merged quote does not account for the cover',
    'merge/merge.ts',
    '...(cover > 0 && { cover: Math.max(cover, before.meta.cover ?? 0) }),',
    '',
  ),
  one(
    'a cover does not count for a field',
    'documents.ts',
    'return cover > (meta.cover ?? 0) ? Math.max(own, cover) : own',
    'return own',
  ),
  one(
    'a cover counts twice',
    'documents.ts',
    'return cover > (meta.cover ?? 0) ? Math.max(own, cover) : own',
    'return Math.max(own, cover)',
  ),
  one(
    'a repeat while others write',
    'merge/merge.ts',
    '|| tokens !== undefined) return false',
    ') return false',
  ),
  one(
    'a repeat of an older request',
    'merge/merge.ts',
    'return request.stamp > Math.max(stamp, cover)',
    'return true',
  ),
  one(
    'a repeat among several requests',
    'merge/merge.ts',
    'request === undefined || requests.length > 1) return false',
    'request === undefined) return false',
  ),
  known(
    one(
      'a digest while others write',
      'merge/merge.ts',
      '|| stored?.meta.tokens !== undefined) return undefined',
      ') return undefined',
    ),
  ),
  rare(
    60_000,
    one(
      'a digest beside older fields',
      'merge/merge.ts',
      'stamp !== request.stamp || stamps !== undefined',
      'stamp !== request.stamp',
    ),
  ),
  one(
    'a digest beside quotes of other requests',
    'merge/merge.ts',
    'stamp !== request.stamp || stamps !== undefined',
    'stamps !== undefined',
  ),
  one(
    'a digest of a part of the thread',
    'merge/merge.ts',
    'return known === (stored?.quoteCount ?? 0) ? request.digest : undefined',
    'return known >= 0 ? request.digest : undefined',
  ),
  known(
    one(
      'a recounted source keeps its digest',
      'write/sum-sources.ts',
      'sources.map(withoutDigest)',
      '(sources.map(withoutDigest), sources.map((stored) => ({ stored, document: stored })))',
    ),
  ),
  one(
    'a redelivered request forgets that it changed a document',
    'merge/merge.ts',
    'return mayHaveChangedBefore ? ',
    'return request.stamp < 0 ? ',
  ),
  one(
    'an older value wins',
    'merge/merge.ts',
    'if (stamp <= (stamps[name] ?? Number.NEGATIVE_INFINITY)) continue',
    '',
  ),
  one(
    'the position of a later request wins',
    'merge/merge.ts',
    'const isMoved = position < before.position',
    'const isMoved = position > before.position',
  ),
  one(
    'an older request does not lower a position',
    'merge/merge.ts',
    'const isMoved = position < before.position',
    'const isMoved = false',
  ),
  one(
    'a lower position alone is not written',
    'merge/merge.ts',
    'if (!advanced && !isMoved) return',
    'if (!advanced) return',
  ),
  one(
    'a lower position is lost under a new cover',
    'merge/merge.ts',
    'changed: draft.changed || changed || isMoved,',
    'changed: draft.changed || changed,',
  ),
  one(
    'a merge loses the position',
    'merge/merge.ts',
    'position: isMoved ? position : before.position,',
    '',
  ),
  one(
    'quotes of one request share a position',
    'documents.ts',
    "String(index).padStart(INDEX_DIGITS, '0')",
    "'0'.padStart(INDEX_DIGITS, '0')",
  ),
  one(
    'any given text counts as the stored one',
    'write/read-stored.ts',
    '=== true && textDigest === textDigestOf(text)',
    '!== undefined',
  ),
  one(
    'a stored text that is newer counts as replaced',
    'write/read-stored.ts',
    'one.stamp > stamp',
    'one.stamp > 0',
  ),
  one(
    'a cover does not count for a text that is not read',
    'write/read-stored.ts',
    "stampOfField(quote, 'text', cover)",
    "stampOfField(quote, 'text', cover * 0)",
  ),
  one(
    'a changed text keeps the digest of the one before',
    'write/store-batch.ts',
    'document.meta.textDigest = textDigestOf',
    'document.meta.textDigest ??= textDigestOf',
  ),
]
