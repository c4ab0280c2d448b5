// Runs the command `import` in the process of a test.
import { PassThrough, Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import type { FindApiDeps } from '@sluice/terminal'
import { type Ran, runMade } from '@sluice/terminal/test-support'
import { importCommand } from './import-command.ts'

/** Runs `sluice import …` with an empty standard input. */
export async function runImport(deps: FindApiDeps, args: readonly string[]): Promise<Ran> {
  const stderr = Object.assign(new PassThrough(), { isTTY: false, columns: 80 })
  const process: { exitCode?: string | number | null | undefined } = {}
  const argv = ['node', 'sluice', 'import', ...args]
  const fake = Object.assign(process, {
    stdin: Readable.from([]),
    stderr,
    argv,
    on: () => fake,
    off: () => fake,
  })
  const errors = text(stderr)
  const ran = await runMade((say) => importCommand({ ...deps, say, process: fake as never }), args)
  stderr.end()
  // The command sets the exit code itself.
  return { stdout: ran.stdout, stderr: ran.stderr + (await errors), code: Number(process.exitCode) }
}
