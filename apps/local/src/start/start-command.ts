// The command `start`. It checks the settings of every process before it starts anything.
import { apiSettings } from '@sluice/api/settings'
import { dashboardSettings } from '@sluice/dashboard/settings'
import { readSettings, setting } from '@sluice/process'
import { listenForStop, parseCount } from '@sluice/terminal'
import { workerSettings } from '@sluice/worker/settings'
import { Command, InvalidArgumentError } from 'commander'
import { workspaceMains } from './apps.ts'
import { type StartOptions, start } from './start.ts'

type StartDeps = Pick<
  StartOptions,
  'folder' | 'env' | 'connectStore' | 'createLink' | 'checkRedis' | 'say'
>

// The settings of all processes that `start` runs, so that all faults are reported together.
// `start` chooses each admin port and the dashboard's address, so it ignores `ADMIN_PORT`, and
// `PORT` and `HOST` apply to the API.
const { adminPort: _ignored, ...processes } = {
  ...dashboardSettings,
  ...workerSettings,
  ...apiSettings,
}
const settings = {
  ...processes,
  port: setting.wholeNumber({
    env: 'PORT',
    description: 'The port of the API.',
    default: 3000,
    min: 1,
    max: 65_535,
  }),
}

/** An app ends by itself when its grace time is over. If not, `start` kills it this much later. */
const marginMs = 3_000

/** The command `start`: runs everything on this machine until Ctrl-C. */
export function startCommand(deps: StartDeps): Command {
  return new Command('start')
    .description('Runs servers, API, workers and dashboard on this machine until Ctrl-C')
    .option('--workers <number>', 'how many worker processes', parseWorkers, 2)
    .action(({ workers }: { workers: number }) => runStart(deps, workers))
}

/** A larger number is refused as mistyped, because each worker takes about 100 MB. */
const MOST_WORKERS = 64

function parseWorkers(text: string): number {
  const workers = parseCount(text)
  if (workers > MOST_WORKERS) throw new InvalidArgumentError(`At most ${MOST_WORKERS} workers.`)
  return workers
}

async function runStart(deps: StartDeps, workers: number): Promise<void> {
  // Never released, because a signal that comes while the process ends must not change its exit
  // code.
  const { stopping, hurry } = listenForStop()
  try {
    const { port, host, shutdownGraceSeconds } = readSettings(settings, deps.env)
    const graceMs = shutdownGraceSeconds * 1_000 + marginMs
    await start({ ...deps, host, port, workers, graceMs, mains: workspaceMains, stopping, hurry })
  } catch (error) {
    if (error !== stopping.reason) throw error
  }
}
