import { BaseSequencer, type TestSpecification } from 'vitest/node'

/** Spreads the files of fault tests evenly over the run: they run one at a time and mostly wait, so two in a row would leave a worker idle. */
export class SpreadFaults extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files)
    const isFault = ({ project }: TestSpecification) => project.name === 'faults'
    const places = [sorted.filter(isFault), sorted.filter((file) => !isFault(file))].flatMap((some) =>
      some.map((file, at) => ({ file, place: at / some.length })),
    )
    return places.sort((one, other) => one.place - other.place).map(({ file }) => file)
  }
}
