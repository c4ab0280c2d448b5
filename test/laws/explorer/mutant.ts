// Makes mutants of the store: each removes one guard by an edit of a file of packages/store/src.

export interface Mutant {
  name: string
  /** The number of histories of each kind, if not the usual one. */
  runs?: number
  /** A test of `mutants.main.ts` shows it. Random histories hardly ever do. */
  isKnown?: true
  edits: { file: string; find: string; replace: string }[]
}

const edit = (file: string, find: string, replace: string) => ({ file, find, replace })

/** An update of a stored document without `meta` takes effect whatever the version is. */
const unguarded = edit(
  'write/guarded-writes.ts',
  "'meta.version': stored?.meta.version",
  "...(stored.meta && { 'meta.version': stored.meta.version })",
)

export const one = (name: string, file: string, find: string, replace: string): Mutant => ({
  name,
  edits: [edit(file, find, replace)],
})

/** It takes more histories than usual to notice this mutant: `runs` of each kind. */
export const rare = (runs: number, mutant: Mutant): Mutant => ({ ...mutant, runs })

/** `known-histories`, `repeats` or `deletions` has a history that shows this mutant. */
export const known = (mutant: Mutant): Mutant => ({ ...mutant, isKnown: true })

export const unguardedBy = (name: string, file: string, find: string, replace: string): Mutant => ({
  name: `no version filter for ${name}`,
  edits: [unguarded, edit(file, find, replace)],
})
