// The commands of the program `sluice`.
import type { importCommand } from '@sluice/importer'
import { withRunning } from '@sluice/terminal'
import type { Command } from 'commander'
import type { DoctorDeps } from './doctor/doctor-command.ts'
import type { exportCommand } from './export/export-command.ts'
import type { tailCommand } from './jobs/hits-commands.ts'
import type { jobsCommand } from './jobs/jobs-command.ts'
import type { statusCommand } from './jobs/queue-commands.ts'
import type { loginCommand } from './login/login-command.ts'
import type { deleteCommand } from './sources/delete-command.ts'

type DepsOf<Make extends (deps: never) => Command> = Parameters<Make>[0]
export type CliDeps = DoctorDeps &
  DepsOf<typeof exportCommand> &
  DepsOf<typeof importCommand> &
  DepsOf<typeof deleteCommand> &
  DepsOf<typeof jobsCommand> &
  DepsOf<typeof loginCommand> &
  DepsOf<typeof statusCommand> &
  DepsOf<typeof tailCommand>

/**
 * Each command is loaded only when it is run or listed, because loading all of them takes 0.2 s.
 */
export const commandsOf = (deps: CliDeps): Readonly<Record<string, () => Promise<Command>>> => ({
  import: async () => (await import('@sluice/importer')).importCommand(deps),
  export: async () => (await import('./export/export-command.ts')).exportCommand(deps),
  list: async () => (await import('./sources/sources-commands.ts')).listCommand(deps),
  get: async () => (await import('./sources/sources-commands.ts')).getCommand(deps),
  erase: async () => (await import('./sources/erase-command.ts')).eraseCommand(deps),
  erasures: async () => (await import('./doctor/erasures-command.ts')).erasuresCommand(deps),
  delete: async () => (await import('./sources/delete-command.ts')).deleteCommand(deps),
  keys: async () => (await import('./keys/keys-command.ts')).keysCommand(deps),
  tenants: async () => (await import('./tenants/tenants-command.ts')).tenantsCommand(deps),
  login: async () => (await import('./login/login-command.ts')).loginCommand(deps),
  status: async () => (await import('./jobs/queue-commands.ts')).statusCommand(deps),
  find: async () => (await import('./jobs/hits-commands.ts')).findCommand(deps),
  tail: async () => (await import('./jobs/hits-commands.ts')).tailCommand(deps),
  jobs: async () => (await import('./jobs/jobs-command.ts')).jobsCommand(deps),
  pause: async () => (await import('./jobs/queue-commands.ts')).laneCommand('pause', deps),
  resume: async () => (await import('./jobs/queue-commands.ts')).laneCommand('resume', deps),
  async doctor() {
    const { doctorCommand } = await import('./doctor/doctor-command.ts')
    return doctorCommand({ ...deps, env: await withRunning(deps.folder, deps.env) })
  },
})
