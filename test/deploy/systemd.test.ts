import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { NODE_FLAGS } from '@sluice/local'
import { type TestContext, test } from 'vitest'
import { parse } from 'yaml'
import { needs } from '../runner/programs.ts'
import { root } from './manifests.ts'

const FOLDER = `${root}deploy/systemd/`
const units = readdirSync(FOLDER).filter((name) => name.endsWith('.service'))
const compose = parse(readFileSync(`${root}docker-compose.yml`, 'utf8'), { merge: true })

test(
  'systemd knows each directive of the units, and calls them well protected',
  needs('systemd'),
  (t) => {
    const folder = temporary(t)
    const paths = units.map((unit) => join(folder, unit))
    for (const unit of units) {
      const text = readFileSync(FOLDER + unit, 'utf8').replaceAll(
        '/opt/sluice',
        root.replace(/\/$/, ''),
      )
      writeFileSync(join(folder, unit), text)
    }
    assert.equal(analyze(['verify', '--man=no', '--recursive-errors=no', ...paths]), '')
    // Of 100, which is a unit without any protection.
    const report = analyze(['security', '--offline=yes', '--threshold=20', '--no-pager', ...paths])
    assert.deepEqual(
      [/^exit/.test(report), report.match(/Overall exposure level/g)?.length],
      [false, units.length],
    )
    writeFileSync(join(folder, 'broken.service'), '[Service]\nExecStart=/missing\nRestrt=always\n')
    assert.match(
      analyze(['verify', '--man=no', join(folder, 'broken.service')]),
      /Restrt.*missing/s,
    )
  },
)

test('units have the flags, memory and grace time of containers, a port each, and one protection', () => {
  const all = units.map((unit) => readFileSync(FOLDER + unit, 'utf8'))
  const protections = new Set(all.map((text) => text.slice(text.indexOf('\nNoNewPrivileges='))))
  assert.equal(protections.size, 1)
  const facts = all.map((text) => {
    const directive = (name: string) => new RegExp(`\\b${name}=(.*)`).exec(text)?.[1]
    const [, flags = '', app = ''] =
      /node (.*?) ?apps\/(\w+)\/src\/main\.ts$/.exec(directive('ExecStart') ?? '') ?? []
    assert.equal(flags, app === 'dashboard' ? '' : NODE_FLAGS.join(' '))
    assert.equal(directive('MemoryMax')?.toLowerCase(), compose.services[app].mem_limit)
    assert.equal(directive('TimeoutStopSec'), '25')
    return [app, directive('ADMIN_PORT')]
  })
  assert.deepEqual(Object.fromEntries(facts), { api: '9464', dashboard: '9465', worker: '947%i' })
})

test('the documented `sluice` of units runs a command with their settings', (t) => {
  const definition =
    /^sluice\(\) \{ sudo .*\}/m.exec(
      readFileSync(`${root}docs/operate/first-day.md`, 'utf8'),
    )?.[0] ?? ''
  const folder = temporary(t)
  mkdirSync(join(folder, 'bin'))
  // Takes its own options away, as sudo does.
  const sudo = '#!/bin/sh\nshift 3\nexec "$@"\n'
  writeFileSync(join(folder, 'bin/sudo'), sudo, { mode: 0o755 })
  const env = readFileSync(`${FOLDER}sluice.env`, 'utf8').replaceAll('/etc/sluice', folder)
  writeFileSync(join(folder, 'sluice.env'), env)
  const own = definition.replaceAll('/opt/sluice/', root).replaceAll('/etc/sluice', folder)
  const PATH = `${join(folder, 'bin')}:${process.env.PATH}`
  const ran = spawnSync('sh', ['-c', `${own}; sluice keys list`], {
    env: { PATH },
    encoding: 'utf8',
  })
  assert.match(
    ran.stderr,
    new RegExp(`REDIS_URL_FILE names a file that can't be read: .*${folder}/redis-url`),
  )
})

function temporary(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-units-'))
  t.onTestFinished(() => rmSync(folder, { recursive: true }))
  return folder
}

/** What systemd-analyze says, after its exit status if it is not 0. */
function analyze(args: readonly string[]): string {
  const { status, stdout, stderr } = spawnSync('systemd-analyze', args, { encoding: 'utf8' })
  return `${status === 0 ? '' : `exit ${status} `}${stdout}${stderr}`
}
