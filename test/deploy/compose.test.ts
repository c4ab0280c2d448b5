import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { test } from 'vitest'
import { parse } from 'yaml'
import { needs } from '../runner/programs.ts'
import { promtool } from '../support/start-prometheus.ts'
import { root } from './manifests.ts'

interface Service {
  build?: string
  image: string
  mem_limit?: string
  cpus?: number
  tmpfs?: string[]
  volumes?: string[]
  user?: string
  read_only?: boolean
  cap_drop?: string[]
  security_opt?: string[]
}

const compose: { services: Record<string, Service>; volumes: Record<string, unknown> } = parse(
  readFileSync(`${root}docker-compose.yml`, 'utf8'),
  { merge: true },
)

for (const [name, service] of Object.entries(compose.services)) {
  test(`the service ${name} of docker-compose.yml has limits, an exact tag and volumes that exist`, () => {
    assert.match(service.mem_limit ?? '', /^\d+[gm]$/)
    assert.ok(service.cpus)
    if (service.build === undefined) assert.match(service.image, /:v?\d+\.\d+\.\d+$/)
    for (const volume of service.volumes ?? []) {
      const [source = ''] = volume.split(':')
      assert.ok(
        source.startsWith('./') ? existsSync(root + source) : source in compose.volumes,
        volume,
      )
    }
  })
}

for (const [name, service] of Object.entries(compose.services)) {
  test(`the service ${name} of docker-compose.yml has least rights`, () => {
    assert.deepEqual(service.cap_drop, ['ALL'])
    assert.deepEqual(service.security_opt, ['no-new-privileges:true'])
    assert.equal(service.read_only, name === 'grafana' ? undefined : true)
  })
}

test('servers whose entrypoint begins as root begin as the user that it would become: no capability is left for that', () => {
  const { redis, mongo } = compose.services
  assert.deepEqual([redis?.user, mongo?.user], ['redis', 'mongodb'])
})

test('the API of docker-compose.yml spills to a volume, and not into memory', () => {
  const { tmpfs, volumes } = compose.services.api ?? {}
  assert.deepEqual({ tmpfs, volumes }, { tmpfs: [], volumes: ['spill:/tmp'] })
})

test('Prometheus reads the configuration of docker-compose.yml', needs('prometheus'), () => {
  assert.match(
    promtool(['check', 'config', '--syntax-only', `${root}deploy/compose/prometheus.yml`]),
    /SUCCESS/,
  )
})
