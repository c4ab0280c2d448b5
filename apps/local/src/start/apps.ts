// The processes of one instance, and the ports that they listen on.
import { fileURLToPath } from 'node:url'
import { UserError } from '@sluice/terminal'
import { freePort, isPortFree, takePort } from '../servers/machine.ts'

/** The file that each process runs. */
export type Mains = typeof workspaceMains

export const workspaceMains = {
  api: mainOf('api'),
  worker: mainOf('worker'),
  dashboard: mainOf('dashboard'),
}

/**
 * The dashboard speaks plain HTTP, so `HOST` opens only the API to other machines, and never the
 * dashboard.
 */
export const DASHBOARD_HOST = '127.0.0.1'

export interface Ports {
  readonly api: number
  readonly dashboard: number
  /** The ports for metrics and health, one for each process. There are as many workers as ports. */
  readonly apiAdmin: number
  readonly dashboardAdmin: number
  readonly workerAdmin: readonly number[]
}

/**
 * Lists the processes of an instance, in groups. Each group stops as a whole, the last group first.
 */
export function appsOf(
  mains: Mains,
  env: NodeJS.ProcessEnv,
  host: string,
  ports: Ports,
): readonly (readonly App[])[] {
  const app = (name: string, main: string, adminPort: number, own: NodeJS.ProcessEnv = {}): App => {
    return { name, main, env: { ...env, ...own, ADMIN_PORT: String(adminPort) } }
  }
  return [
    [
      app('dashboard', mains.dashboard, ports.dashboardAdmin, {
        HOST: DASHBOARD_HOST,
        PORT: String(ports.dashboard),
      }),
    ],
    ports.workerAdmin.map((port, index) => app(`worker-${index + 1}`, mains.worker, port)),
    [app('api', mains.api, ports.apiAdmin, { HOST: host, PORT: String(ports.api) })],
  ]
}

function mainOf(app: string): string {
  return fileURLToPath(import.meta.resolve(`../../../${app}/src/main.ts`))
}

const usualDashboardPort = 3001

/**
 * Chooses ports: the configured port for the API, the usual one for the dashboard if it is free,
 * and free ones for the rest.
 * @throws {UserError}
 */
export async function choosePorts(api: number, host: string, workers: number): Promise<Ports> {
  if (!(await isPortFree(api, host))) {
    const other = await freePort()
    throw new UserError(
      `Port ${api} is taken on ${host}. Choose another: PORT=${other} before the command.`,
    )
  }
  // Seconds pass before the dashboard listens. Another `start` meanwhile chooses another port.
  const isUsualFree = api !== usualDashboardPort && (await takePort(usualDashboardPort))
  // The API's port counts as free, because the API does not listen on it yet.
  const ports = new Set([api])
  while (ports.size < workers + 4) ports.add(await freePort())
  const [, free = 0, apiAdmin = 0, dashboardAdmin = 0, ...workerAdmin] = ports
  return {
    api,
    dashboard: isUsualFree ? usualDashboardPort : free,
    apiAdmin,
    dashboardAdmin,
    workerAdmin,
  }
}

/** One of Sluice's own processes. */
export interface App {
  /** The process's name, also of its log. */
  readonly name: string
  readonly main: string
  readonly env: NodeJS.ProcessEnv
}
