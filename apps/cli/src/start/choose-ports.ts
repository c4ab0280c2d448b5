import { freePort, isPortFree } from '@sluice/servers'
import { DASHBOARD_HOST, type Ports } from './apps.ts'

/** The API's port is taken; the message names it and the setting that moves it. */
export class PortTaken extends Error {
  override readonly name = 'PortTaken'
}

const dashboardPort = 3001
const workers = 2

/** The ports of one instance: the API's as asked for, the dashboard's the usual one where that is free, the others any. Throws PortTaken. */
export async function choosePorts(api: number, host: string): Promise<Ports> {
  if (!(await isPortFree(api, host))) {
    throw new PortTaken(`Port ${api} is taken on ${host}. Choose another: PORT=${api + 1} before the command.`)
  }
  const isUsual = api !== dashboardPort && (await isPortFree(dashboardPort, DASHBOARD_HOST))
  const [apiAdmin, ...others] = await distinctPorts(workers + 2, api)
  const [dashboard, ...workerAdmin] = others
  if (apiAdmin === undefined || dashboard === undefined) throw new Error('Too few ports were found')
  return { api, dashboard: isUsual ? dashboardPort : dashboard, apiAdmin, workerAdmin }
}

async function distinctPorts(count: number, taken: number): Promise<readonly number[]> {
  const ports = new Set<number>()
  while (ports.size < count) {
    const port = await freePort()
    if (port !== taken) ports.add(port)
  }
  return [...ports]
}
