// The processes of one instance, and the ports that they listen on.
import { fileURLToPath } from 'node:url'
import { freePort, isPortFree } from '@sluice/servers'
import type { App } from './keep-app.ts'

/** The file that each process runs. */
export interface Mains {
  readonly api: string
  readonly worker: string
  readonly dashboard: string
}

/** The files of this workspace. */
export const workspaceMains: Mains = {
  api: mainOf('api'),
  worker: mainOf('worker'),
  dashboard: mainOf('dashboard'),
}

/** The dashboard has no login: `HOST` opens the API to other machines, never the dashboard. */
export const DASHBOARD_HOST = '127.0.0.1'

export interface Ports {
  readonly api: number
  readonly dashboard: number
  /** For metrics and health, of the API and of each worker: one worker runs per port. */
  readonly apiAdmin: number
  readonly workerAdmin: readonly number[]
}

/** The processes of one instance, in groups: each group stops as a whole, the last group first. */
export function appsOf(mains: Mains, env: NodeJS.ProcessEnv, host: string, ports: Ports): readonly (readonly App[])[] {
  const admin = (port: number) => ({ ADMIN_PORT: String(port) })
  const workers = ports.workerAdmin.map((port, index) => ({
    name: `worker-${index + 1}`,
    main: mains.worker,
    env: { ...env, ...admin(port) },
  }))
  return [
    [
      {
        name: 'dashboard',
        main: mains.dashboard,
        env: { ...env, HOST: DASHBOARD_HOST, PORT: String(ports.dashboard) },
      },
    ],
    workers,
    [{ name: 'api', main: mains.api, env: { ...env, HOST: host, PORT: String(ports.api), ...admin(ports.apiAdmin) } }],
  ]
}

function mainOf(app: string): string {
  return fileURLToPath(import.meta.resolve(`../../../${app}/src/main.ts`))
}

/** The API's port is taken; the message names it and the setting that moves it. */
export class PortTaken extends Error {
  override readonly name = 'PortTaken'
}

const usualDashboardPort = 3001
const workers = 2

/** The ports of one instance: the API's as configured, the dashboard's usual one where that is free, any free ones for the rest. Throws PortTaken. */
export async function choosePorts(api: number, host: string): Promise<Ports> {
  if (!(await isPortFree(api, host))) {
    throw new PortTaken(`Port ${api} is taken on ${host}. Choose another: PORT=${api + 1} before the command.`)
  }
  const isUsualFree = api !== usualDashboardPort && (await isPortFree(usualDashboardPort, DASHBOARD_HOST))
  const [apiAdmin, ...others] = await distinctPorts(workers + 2, api)
  const [dashboard, ...workerAdmin] = others
  if (apiAdmin === undefined || dashboard === undefined) throw new Error('Too few ports were found')
  return { api, dashboard: isUsualFree ? usualDashboardPort : dashboard, apiAdmin, workerAdmin }
}

async function distinctPorts(count: number, taken: number): Promise<readonly number[]> {
  const ports = new Set<number>()
  while (ports.size < count) {
    const port = await freePort()
    if (port !== taken) ports.add(port)
  }
  return [...ports]
}
