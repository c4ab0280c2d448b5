import { join } from 'node:path'

/** What lies where for the Sluice that is started in a folder. */
export interface InstancePaths {
  readonly root: string
  readonly data: string
  readonly logs: string
  readonly key: string
  readonly running: string
}

/** The paths under `.sluice/` of a folder. */
export function instancePaths(folder: string): InstancePaths {
  const root = join(folder, '.sluice')
  return {
    root,
    data: join(root, 'data'),
    logs: join(root, 'logs'),
    key: join(root, 'key'),
    running: join(root, 'running.json'),
  }
}
