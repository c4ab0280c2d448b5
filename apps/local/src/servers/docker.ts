// Runs a server as a container, if a Docker engine answers.
import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { userInfo } from 'node:os'
import { promisify } from 'node:util'
import { findProgram, sayTime, succeeds } from './machine.ts'
import type { Engine, Location, Machine } from './provider.ts'

const run = promisify(execFile)

export interface Image {
  readonly name: string
  /** The server's port inside the container. */
  readonly port: number
  /** The server's data folder inside the container. */
  readonly data: string
  readonly args: readonly string[]
}

/**
 * Returns the engine that runs an image. Throws if no Docker engine answers, or if the image can't
 * be pulled.
 */
export async function dockerEngine(
  image: Image,
  machine: Machine,
  isReady: Engine['isReady'],
): Promise<Engine> {
  const docker = await findDocker(image.name, machine)
  return {
    title: `the image ${image.name} in Docker`,
    folder: 'docker',
    command: (location) => ({ command: docker, args: dockerRun(image, location) }),
    prepare: (location) => removeContainer(docker, location),
    isReady,
  }
}

/**
 * Returns the `docker` program, after it has pulled the image if that is absent. Throws if no
 * Docker engine answers.
 */
export async function findDocker(image: string, { path, say, signal }: Machine): Promise<string> {
  const docker = await findProgram(['docker', 'podman'], path)
  const answers = await succeeds(
    run(docker, ['version', '--format', '{{.Server.Version}}'], { signal, timeout: 5_000 }),
  )
  if (!answers) throw new Error('no Docker engine answers')
  if (await succeeds(run(docker, ['image', 'inspect', image], { signal, timeout: 10_000 })))
    return docker
  say(`Pulling the image ${image}, once`)
  await sayTime('Pulling', run(docker, ['pull', '--quiet', image], { signal }), say)
  return docker
}

/**
 * Returns the arguments with which `docker` runs an image in the foreground until SIGTERM. The port
 * is open only on 127.0.0.1, because the server asks for no password. The server runs as this user,
 * so that the user can read and remove its files.
 */
export function dockerRun(image: Image, location: Location): readonly string[] {
  const { uid, gid } = userInfo()
  return [
    ...['run', '--rm', '--init', '--name', containerName(location)],
    ...['--publish', `127.0.0.1:${location.port}:${image.port}`],
    ...['--volume', `${location.folder}:${image.data}`],
    ...['--user', `${uid}:${gid}`],
    image.name,
    ...image.args,
  ]
}

/** Removes this folder's container if it still runs because its `docker` was killed. */
export async function removeContainer(docker: string, location: Location): Promise<void> {
  await run(docker, ['rm', '--force', containerName(location)], { timeout: 30_000 }).catch(() => {})
}

function containerName({ folder }: Location): string {
  return `sluice-${createHash('sha256').update(folder).digest('hex').slice(0, 16)}`
}
