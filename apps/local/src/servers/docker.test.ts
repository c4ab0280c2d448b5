import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'vitest'
import { dockerRun, findDocker, removeContainer } from './docker.ts'
import { fakeProgram, machineOf, temporaryFolder } from './servers.test-support.ts'

const machine = (folder: string) => machineOf({ path: folder, cacheDir: folder })

test('without the program, or without an engine that answers, Docker is missing', async (t) => {
  const folder = await temporaryFolder(t)
  await assert.rejects(findDocker('redis:8.2', machine(folder)), {
    message: 'no `docker` on the PATH',
  })
  await fakeProgram(folder, 'docker', 'exit 1')
  await assert.rejects(findDocker('redis:8.2', machine(folder)), {
    message: 'no Docker engine answers',
  })
})

test('an absent image is pulled, with a message', async (t) => {
  const folder = await temporaryFolder(t)
  const docker = await fakeProgram(
    folder,
    'docker',
    `echo "$*" >> ${folder}/calls; [ "$1" != image ]`,
  )
  const here = machine(folder)
  assert.equal(await findDocker('redis:8.2', here), docker)
  assert.match(await readFile(join(folder, 'calls'), 'utf8'), /^pull --quiet redis:8\.2$/m)
  assert.deepEqual(here.lines, ['Pulling the image redis:8.2, once'])
})

test('an image that cannot be pulled is an error', async (t) => {
  const folder = await temporaryFolder(t)
  await fakeProgram(folder, 'docker', '[ "$1" = version ]')
  await assert.rejects(findDocker('redis:8.2', machine(folder)))
})

test('a container is open to this machine only, and keeps its data in our folder', () => {
  const image = { name: 'redis:8.2', port: 6379, data: '/data', args: ['redis-server'] }
  const line = dockerRun(image, { folder: '/here/data', port: 23456, durable: true }).join(' ')
  assert.match(line, /--publish 127\.0\.0\.1:23456:6379 /)
  assert.match(line, /--volume \/here\/data:\/data /)
  assert.match(line, / redis:8\.2 redis-server$/)
})

test('a container that a killed docker process left running on this folder is removed by its name', async (t) => {
  const folder = await temporaryFolder(t)
  const docker = await fakeProgram(folder, 'docker', `echo "$*" > ${folder}/call`)
  const location = { folder, port: 23456, durable: true }
  await removeContainer(docker, location)
  const [, name] =
    /--name (\S+)/.exec(
      dockerRun({ name: 'i', port: 1, data: '/d', args: [] }, location).join(' '),
    ) ?? []
  assert.equal(await readFile(join(folder, 'call'), 'utf8'), `rm --force ${name}\n`)
})
