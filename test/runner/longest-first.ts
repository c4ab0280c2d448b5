import { BaseSequencer, type TestSpecification } from 'vitest/node'

/** Kinds with long files come first, so that short files fill both cores at the end. The soak lasts for minutes. */
const KINDS = ['soak', 'faults', 'integration', 'e2e', 'attacks', 'bench', 'laws', 'docs', 'unit', 'overload']

/** Starts the kinds in this order. Files of one kind stay together, because a process runs files of one kind only. */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rankOf = ({ project }: TestSpecification) => KINDS.indexOf(project.name)
    return (await super.sort(files)).toSorted((one, other) => rankOf(one) - rankOf(other))
  }
}
