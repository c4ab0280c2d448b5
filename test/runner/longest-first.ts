import { relative } from 'node:path'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

/**
 * Folders with long files come first, so that short files fill both cores at the end. The soak,
 * the upgrade and the explorer last for minutes, and the overload for one. The tests of operations
 * and of the command line wait for time limits, so each stands before tests that compute.
 */
const FOLDERS = [
  'test/soak',
  'test/upgrade',
  'test/laws/explorer',
  'test/overload',
  'test/faults',
  'apps/local',
  'packages/queue',
  'test/e2e',
  'packages/operations',
  'test/attacks',
  'test/bench',
  'apps/cli',
  'test/laws',
  '',
]

/** Starts the files in the order of these folders. */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rankOf = ({ moduleId, project }: TestSpecification) =>
      FOLDERS.findIndex((folder) => relative(project.config.root, moduleId).startsWith(folder))
    return (await super.sort(files)).toSorted((one, other) => rankOf(one) - rankOf(other))
  }
}
