import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { userInfo } from 'node:os'
import { promisify } from 'node:util'
import type { Machine, Missing, Spot } from './engine.ts'
import { findProgram } from './find-program.ts'

const run = promisify(execFile)

export interface Image {
  readonly name: string
  /** The port it listens on inside its container. */
  readonly port: number
  /** Where it keeps its data inside its container. */
  readonly data: string
  readonly args: (spot: Spot) => readonly string[]
}

/** The `docker` program, once an engine answers it and the image is there; pulls the image where it is not. */
export async function findDocker(image: string, { path, say, signal }: Machine): Promise<string | Missing> {
  const docker = await findProgram(['docker', 'podman'], path)
  if (docker === undefined) return { missing: 'no `docker` on the PATH' }
  const answers = await succeeds(docker, ['version', '--format', '{{.Server.Version}}'], signal, 5_000)
  if (!answers) return { missing: 'no Docker engine answers' }
  if (await succeeds(docker, ['image', 'inspect', image], signal, 10_000)) return docker
  say(`Pulling the image ${image}, once`)
  await run(docker, ['pull', '--quiet', image], { signal })
  return docker
}

/**
 * The command line that runs an image in the foreground until it gets SIGTERM. Its port is open on 127.0.0.1 alone:
 * what listens there asks for no password. It runs as this user, so that its files can be read and removed.
 */
export function dockerRun(image: Image, spot: Spot): readonly string[] {
  const { uid, gid } = userInfo()
  return [
    ...['run', '--rm', '--init', '--name', containerName(spot)],
    ...['--publish', `127.0.0.1:${spot.port}:${image.port}`],
    ...['--volume', `${spot.folder}:${image.data}`],
    ...['--user', `${uid}:${gid}`],
    image.name,
    ...image.args(spot),
  ]
}

/** Removes the container of this folder that a killed `docker` left running. */
export async function removeContainer(docker: string, spot: Spot): Promise<void> {
  await run(docker, ['rm', '--force', containerName(spot)], { timeout: 30_000 }).catch(() => {})
}

function containerName({ folder }: Spot): string {
  return `sluice-${createHash('sha256').update(folder).digest('hex').slice(0, 16)}`
}

function succeeds(program: string, args: readonly string[], signal: AbortSignal, timeout: number): Promise<boolean> {
  return run(program, [...args], { signal, timeout }).then(
    () => true,
    () => false,
  )
}
