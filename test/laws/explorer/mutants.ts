// All guards of the store, in three files because one would be too long.
import { deletionMutants } from './deletion-mutants.ts'
import { mergeMutants } from './merge-mutants.ts'
import type { Mutant } from './mutant.ts'
import { writeMutants } from './write-mutants.ts'

export const mutants: readonly Mutant[] = [...writeMutants, ...mergeMutants, ...deletionMutants]
