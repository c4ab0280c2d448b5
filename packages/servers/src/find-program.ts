import { execFile } from 'node:child_process'
import { access, constants } from 'node:fs/promises'
import { delimiter, join } from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)

/** The first of the named programs in the folders of `path` (as the variable PATH has them), or undefined. */
export async function findProgram(names: readonly string[], path: string): Promise<string | undefined> {
  for (const name of names) {
    for (const folder of path.split(delimiter).filter((folder) => folder !== '')) {
      const file = join(folder, name)
      if (await isExecutable(file)) return file
    }
  }
  return undefined
}

/** The version that `program --version` prints after a `v`, as `7.0.15`; undefined where it prints none or does not run. */
export async function versionOf(program: string): Promise<string | undefined> {
  try {
    const { stdout } = await run(program, ['--version'], { timeout: 10_000 })
    return /\bv=?(\d+\.\d+(?:\.\d+)?)/.exec(stdout)?.[1]
  } catch {
    return undefined
  }
}

/** Whether a version such as `7.0.15` is at least `major.minor`. */
export function isAtLeast(version: string, [major, minor]: readonly [number, number]): boolean {
  const [ownMajor = 0, ownMinor = 0] = version.split('.').map(Number)
  return ownMajor > major || (ownMajor === major && ownMinor >= minor)
}

async function isExecutable(file: string): Promise<boolean> {
  return access(file, constants.X_OK).then(
    () => true,
    () => false,
  )
}
