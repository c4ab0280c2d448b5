// Lets one part of a running Sluice suffer one fault, and brings it back.
import { setTimeout as pause } from 'node:timers/promises'
import type { StartedProcess } from '@sluice/test-support'
import type { PrivateServer } from '../support/private-server.ts'
import type { Fault } from './schedule.ts'
import type { World } from './world.ts'

/** Resolves when the part works again, or is replaced by another one. */
export async function injectFault(world: World, fault: Fault): Promise<void> {
  if (fault.part === 'worker') await ofWorker(world, fault)
  else if (fault.part === 'api') await ofApi(world, fault)
  else {
    if (fault.part === 'redis' && fault.name === 'kill') world.redisKills.push(performance.now())
    await ofServer(world[fault.part], fault)
  }
}

async function ofWorker({ workers, sluice, violations }: World, fault: Fault): Promise<void> {
  const at = Math.floor(fault.choice * workers.length)
  const worker = workers[at]
  if (worker === undefined) return
  if (fault.name === 'stop') return stopFor(worker, fault.seconds)
  workers.splice(at, 1)
  await end(worker, fault, violations)
  workers.push(await sluice.startWorker())
}

/** The new replica comes before an orderly end, and after a crash. */
async function ofApi({ apis, sluice, balancer, violations }: World, fault: Fault): Promise<void> {
  const at = Math.floor(fault.choice * apis.length)
  const backend = apis[at]
  if (backend === undefined) return
  if (fault.name === 'stop') return stopFor(backend.api, fault.seconds)
  apis.splice(at, 1)
  if (fault.name === 'kill') await end(backend.api, fault, violations)
  const next = await sluice.startApi()
  await balancer.add(next)
  apis.push(next)
  if (fault.name === 'terminate') await end(backend.api, fault, violations)
}

async function ofServer(server: PrivateServer, { name, seconds }: Fault): Promise<void> {
  if (name === 'kill') await server.kill()
  else if (name === 'stop') await server.signal('SIGSTOP')
  else server.freeze()
  await pause(seconds * 1000)
  if (name === 'kill') await server.startAgain()
  else if (name === 'stop') await server.signal('SIGCONT')
  else server.thaw()
}

async function stopFor(process: StartedProcess, seconds: number): Promise<void> {
  process.signal('SIGSTOP')
  await pause(seconds * 1000)
  process.signal('SIGCONT')
}

async function end(
  process: StartedProcess,
  { name, seconds }: Fault,
  violations: string[],
): Promise<void> {
  process.signal(name === 'kill' ? 'SIGKILL' : 'SIGTERM')
  // A process that exceeds its grace time exits 1.
  const { code, signal } = await process.ended
  if (name === 'kill') await pause(seconds * 1000)
  else if (code !== 0)
    violations.push(
      `a process did not end in order: ${JSON.stringify({ code, signal, last: process.log.slice(-3) })}`,
    )
}
