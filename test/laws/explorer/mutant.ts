// Makes mutants of the store: each removes one guard by an edit of a file of packages/store/src.

export interface Mutant {
  name: string
  /** The number of histories of each kind, if not the usual one. */
  runs?: number
  edits: { file: string; find: string; replace: string }[]
}

const edit = (file: string, find: string, replace: string) => ({ file, find, replace })

/** An update whose `read` is absent takes effect whatever the version is. */
const unguarded = edit(
  'write-threads.ts',
  "q: { _id: write.id, 'meta.version': write.read }",
  "q: { _id: write.id, ...(write.read && { 'meta.version': write.read }) }",
)

export const one = (name: string, file: string, find: string, replace: string): Mutant => ({
  name,
  edits: [edit(file, find, replace)],
})

/** It takes more histories than usual to notice this mutant: so many of each kind. */
export const rare = (runs: number, mutant: Mutant): Mutant => ({ ...mutant, runs })

export const unguardedBy = (name: string, file: string, find: string, replace: string): Mutant => ({
  name: `no version filter for ${name}`,
  edits: [unguarded, edit(file, find, replace)],
})
