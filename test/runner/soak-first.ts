import { BaseSequencer, type TestSpecification } from 'vitest/node'

/** Starts the soak before all other files: it lasts for minutes, and the others run beside it. */
export class SoakFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files)
    const isSoak = ({ project }: TestSpecification) => project.name === 'soak'
    return [...sorted.filter(isSoak), ...sorted.filter((file) => !isSoak(file))]
  }
}
