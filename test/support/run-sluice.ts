// Runs the program `sluice` with the settings of a Sluice of a test's own.
import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { runtimeEnv } from '@sluice/test-support'
import type { PreparedSluice } from './start-sluice.ts'

const MAIN = fileURLToPath(new URL('../../apps/cli/src/main.ts', import.meta.url))

/** Runs `sluice …` in a process of its own. @param settings replace those of its processes. */
export function runSluice(
  { settings, input }: Pick<PreparedSluice, 'settings'> & { input?: string | undefined },
  ...args: string[]
): Promise<{ stdout: string; stderr: string; code: number }> {
  return new Promise((resolve) => {
    const env = { ...runtimeEnv(), ...settings }
    const options = { env, cwd: '/' }
    const running = execFile(process.execPath, [MAIN, ...args], options, (error, stdout, stderr) =>
      resolve({ stdout, stderr, code: Number(error?.code ?? 0) }),
    )
    if (input !== undefined) running.stdin?.end(input)
  })
}
