import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { delimiter, join } from 'node:path'
import { test } from 'vitest'
import { findProgram, freePort, installedEngine, versionOf } from './machine.ts'
import { fakeProgram, temporaryFolder } from './servers.test-support.ts'

test('the first name has priority over the first folder, and a file that is not executable is skipped', async (t) => {
  const folder = await temporaryFolder(t)
  const valkey = await fakeProgram(join(folder, 'a'), 'valkey-server', '')
  await writeFile(join(folder, 'a', 'redis-server'), 'not a program')
  const redis = await fakeProgram(join(folder, 'b'), 'redis-server', '')
  const path = [join(folder, 'a'), '', join(folder, 'b')].join(delimiter)
  assert.equal(await findProgram(['redis-server', 'valkey-server'], path), redis)
  assert.equal(await findProgram(['valkey-server', 'redis-server'], path), valkey)
  await assert.rejects(findProgram(['mongod'], path), { message: 'no `mongod` on the PATH' })
})

for (const [printed, version] of [
  ['Redis server v=7.0.15 sha=00000000:0 malloc=jemalloc-5.3.0 bits=64 build=d81b', '7.0.15'],
  ['Valkey server v=9.1.2 sha=00000000:0 malloc=jemalloc', '9.1.2'],
  ['db version v8.0.4', '8.0.4'],
  ['who knows', undefined],
] as const) {
  test(`the version in “${printed.slice(0, 24)}” is ${version}`, async (t) => {
    const program = await fakeProgram(await temporaryFolder(t), 'server', `echo '${printed}'`)
    assert.equal(await versionOf(program), version)
  })
}

test('versions are compared by number, not by letter', async (t) => {
  const path = await temporaryFolder(t)
  const engine = {
    title: '',
    folder: '',
    command: () => ({ command: '', args: [] }),
    isReady: async () => true,
  }
  const find = async (version: string) => {
    await fakeProgram(path, 'redis-server', `echo 'Redis server v=${version}'`)
    return installedEngine(['redis-server'], '6.2', path, (title) => ({ ...engine, title }))
  }
  for (const version of ['10.0.1', '6.2.0', '6.10'])
    assert.equal((await find(version)).title, `${join(path, 'redis-server')} ${version}`)
  for (const version of ['6.0.16', '5.9'])
    await assert.rejects(find(version), /is \S+, too old: 6\.2 or later/)
})

test('a port is chosen once, although nothing listens on it yet', async () => {
  const ports: number[] = []
  // By chance, some of 600 among 12,000 would be equal.
  for (let i = 0; i < 600; i++) ports.push(await freePort())
  assert.equal(new Set(ports).size, ports.length)
})
