import { fileURLToPath } from 'node:url'
import type { App } from './keep-app.ts'

/** The files that the processes run. */
export interface Mains {
  readonly api: string
  readonly worker: string
  readonly dashboard: string
}

/** Those of this workspace. */
export const workspaceMains: Mains = {
  api: mainOf('api'),
  worker: mainOf('worker'),
  dashboard: mainOf('dashboard'),
}

/** The dashboard has no login: `HOST` opens the API to others, never the dashboard. */
export const DASHBOARD_HOST = '127.0.0.1'

export interface Ports {
  readonly api: number
  readonly dashboard: number
  /** For metrics and health, of the API and of each worker: there are as many workers as ports. */
  readonly apiAdmin: number
  readonly workerAdmin: readonly number[]
}

/** The processes of one instance, in groups: a group stops as a whole, the last one first. */
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
