import { join } from 'node:path'
import { dockerRun, findDocker, type Image, removeContainer } from './docker.ts'
import { downloadedMongod, downloadedVersion } from './downloaded-mongod.ts'
import type { Engine, Machine, Spot, Way } from './engine.ts'
import { findProgram, isAtLeast, versionOf } from './find-program.ts'
import { mongodbAnswers } from './mongodb-answers.ts'
import { isReplicaSetReady, replicaSetName } from './replica-set.ts'
import { secantusVersion, type Wheels } from './wheels.ts'

const oldest = [4, 4] as const

/** The ways to a MongoDB on this machine, in the order in which they are tried. */
export function mongodbWays(machine: Machine, wheels: Wheels): readonly Way[] {
  return [
    { name: '`mongod` on the PATH', find: () => installed(machine) },
    { name: 'Docker', find: () => contained(machine) },
    { name: 'MongoDB by download', find: () => downloaded(machine) },
    { name: 'SecantusDB from PyPI', find: () => fromWheels(wheels) },
  ]
}

/** The URL of a MongoDB that was started here. `directConnection`: a one-node replica set may know itself by another address. */
export function mongodbUrl({ port }: Pick<Spot, 'port'>): string {
  return `mongodb://127.0.0.1:${port}/sluice?directConnection=true`
}

async function installed({ path }: Machine) {
  const program = await findProgram(['mongod'], path)
  if (program === undefined) return { missing: 'not there' }
  const version = await versionOf(program)
  if (version === undefined) return { missing: `${program} tells no version` }
  if (!isAtLeast(version, oldest)) return { missing: `${program} is ${version}, too old: ${oldest.join('.')} or later` }
  return mongodEngine(`${program} ${version}`, 'installed', program)
}

async function downloaded(machine: Machine) {
  const program = await downloadedMongod(machine)
  return typeof program === 'string' ? mongodEngine(`mongod ${downloadedVersion}`, 'downloaded', program) : program
}

function mongodEngine(title: string, folder: string, program: string): Engine {
  return {
    title,
    folder,
    command: (spot) => ({
      command: program,
      args: ['--bind_ip', '127.0.0.1', '--port', String(spot.port), '--dbpath', spot.folder, ...asReplicaSet],
    }),
    isReady: (spot) => isReplicaSetReady(mongodbUrl(spot), `127.0.0.1:${spot.port}`),
  }
}

async function contained(machine: Machine) {
  const docker = await findDocker(image.name, machine)
  if (typeof docker !== 'string') return docker
  return {
    title: `the image ${image.name} in Docker, as a replica set of one`,
    folder: 'docker',
    command: (spot: Spot) => ({ command: docker, args: dockerRun(image, spot) }),
    prepare: (spot: Spot) => removeContainer(docker, spot),
    isReady: (spot: Spot) => isReplicaSetReady(mongodbUrl(spot), `127.0.0.1:${image.port}`),
  }
}

async function fromWheels(wheels: Wheels) {
  const folder = await wheels()
  if (typeof folder !== 'string') return folder
  return {
    title: `SecantusDB ${secantusVersion}`,
    folder: 'secantusdb',
    note: "SecantusDB is a stand-in that speaks MongoDB's protocol: good for trying out, but production wants MongoDB itself",
    command: (spot: Spot) => ({ command: join(folder, 'bin/python3'), args: secantusArgs(spot) }),
    isReady: (spot: Spot) => mongodbAnswers(mongodbUrl(spot)),
  }
}

/** Without `--standalone` drivers number their writes, and each numbered write walks all earlier ones. */
function secantusArgs({ port, folder, durable }: Spot): readonly string[] {
  const place = ['--host', '127.0.0.1', '--port', String(port), '--storage-path', folder]
  return ['-m', 'secantus', '--standalone', ...place, ...(durable ? ['--sync-on-commit'] : [])]
}

/** A replica set of one, because majority write concern and the journal then mean what they mean in production. */
const asReplicaSet = ['--replSet', replicaSetName]

const image: Image = {
  name: 'mongo:8.0',
  port: 27017,
  data: '/data/db',
  args: () => ['mongod', '--bind_ip_all', ...asReplicaSet],
}
