// Runs commands of `sluice` in the process of a test: starting the program costs half a second of
// CPU.
import type { ApiOptions, FindApiDeps } from '@sluice/terminal'
import { type Ran, runMade } from '@sluice/terminal/test-support'
import type { Command } from 'commander'
import { exportCommand } from './export/export-command.ts'
import { openAdminClient } from './jobs/admin-client.ts'
import { tailCommand } from './jobs/hits-commands.ts'
import { jobsCommand } from './jobs/jobs-command.ts'
import { laneCommand, statusCommand } from './jobs/queue-commands.ts'
import type { PrintLines } from './screen.ts'
import { deleteCommand } from './sources/delete-command.ts'
import { getCommand, listCommand } from './sources/sources-commands.ts'

type Print = (line: string) => void

/** Makes a command as `main.ts` does. Nobody answers its questions. */
function makeCommand(
  name: 'delete' | 'export' | 'get' | 'jobs' | 'list' | 'pause' | 'status' | 'tail',
  deps: FindApiDeps,
  print: Print,
) {
  const openClient = (options: ApiOptions) => openAdminClient(deps, options)
  const makers: Record<typeof name, () => Command> = {
    export: () => exportCommand({ ...deps, process, show: print }),
    delete: () =>
      deleteCommand({ ...deps, print, show: print, process, confirm: async () => false }),
    get: () => getCommand({ ...deps, print }),
    jobs: () => jobsCommand({ openClient, print, confirm: async () => false }),
    list: () => listCommand({ ...deps, print }),
    pause: () => laneCommand('pause', { openClient, print }),
    status: () =>
      statusCommand({
        env: {},
        openClient,
        show: print,
        printLines: printedOn(print),
        readDirectly: () => Promise.reject(new Error('not from Redis')),
      }),
    tail: () => tailCommand({ openClient, print, show: print }),
  }
  return makers[name]()
}

/** Runs `sluice NAME …`. */
export function runCommand(
  deps: FindApiDeps,
  name: Parameters<typeof makeCommand>[0],
  args: readonly string[],
): Promise<Ran> {
  return runMade((print) => {
    const command = makeCommand(name, deps, print)
    for (const one of [command, ...command.commands]) one.exitOverride()
    return command
  }, args)
}

/** Prints lines without their colours. */
export const printedOn =
  (print: Print): PrintLines =>
  (lines) =>
    lines.forEach((line) => void print(typeof line === 'string' ? line : line[0]))

export { openAdminClient }
