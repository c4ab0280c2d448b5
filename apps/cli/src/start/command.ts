import { processSettings, readSettings, SettingsError, setting } from '@sluice/ops'
import { DataInUse, NoServerFound, ServerUnreachable, UnusableData } from '@sluice/servers'
import type { StoreConnection } from '@sluice/store'
import { Command } from 'commander'
import { workspaceMains } from './apps.ts'
import { PortTaken } from './choose-ports.ts'
import { AlreadyRunning } from './claim-folder.ts'
import { AppDidNotStart } from './keep-app.ts'
import { start } from './start.ts'
import { stopRequests } from './stop-requests.ts'

export interface Context {
  readonly folder: string
  readonly env: Readonly<Record<string, string | undefined>>
  readonly connectStore: (mongodbUrl: string) => StoreConnection
  readonly say: (line: string) => void
  /** Tells why the command failed, and makes the process exit 1. */
  readonly fail: (message: string) => void
}

const settings = {
  port: setting.wholeNumber({ env: 'PORT', description: 'The port of the API.', default: 3000, min: 1, max: 65_535 }),
  host: setting.text({
    env: 'HOST',
    description: 'The address that the API listens on.',
    default: '127.0.0.1',
  }),
  graceSeconds: processSettings.shutdownGraceSeconds,
}

/** An app ends itself when its grace time is over; only one that can't is killed. */
const marginMs = 3_000

/** `sluice start`: everything on this machine, until Ctrl-C. */
export function startCommand(context: Context): Command {
  return new Command('start')
    .description('run servers, API, workers and dashboard on this machine until Ctrl-C')
    .action(() => runStart(context))
}

async function runStart({ folder, env, connectStore, say, fail }: Context): Promise<void> {
  const { stopping, hurry, release } = stopRequests()
  try {
    const { port, host, graceSeconds } = readSettings(settings, env)
    const graceMs = graceSeconds * 1_000 + marginMs
    await start({ folder, env, host, port, graceMs, mains: workspaceMains, connectStore, say, stopping, hurry })
  } catch (error) {
    if (error === stopping.reason) return
    if (!isForPeople(error)) throw error
    fail(error.message)
  } finally {
    release()
  }
}

const forPeople = [
  SettingsError,
  AlreadyRunning,
  PortTaken,
  AppDidNotStart,
  NoServerFound,
  ServerUnreachable,
  UnusableData,
  DataInUse,
]

/** Whether a failure's message says all that there is to say. */
function isForPeople(error: unknown): error is Error {
  return forPeople.some((kind) => error instanceof kind)
}
