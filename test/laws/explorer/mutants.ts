// All guards of the store, in two files because one would be too long.
import { mergeMutants } from './merge-mutants.ts'
import type { Mutant } from './mutant.ts'
import { writeMutants } from './write-mutants.ts'

export const mutants: readonly Mutant[] = [...writeMutants, ...mergeMutants]
