import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { test } from 'vitest'
import { parse } from 'yaml'
import { hasPrometheus, promtool } from '../support/start-prometheus.ts'
import { root } from './manifests.ts'

interface Service {
  build?: string
  image: string
  mem_limit?: string
  cpus?: number
  tmpfs?: string[]
  volumes?: string[]
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
      assert.ok(source.startsWith('./') ? existsSync(root + source) : source in compose.volumes, volume)
    }
  })
}

test('the API of docker-compose.yml spills to a volume, and not into memory', () => {
  const { tmpfs, volumes } = compose.services.api ?? {}
  assert.deepEqual({ tmpfs, volumes }, { tmpfs: [], volumes: ['spill:/tmp'] })
})

test.skipIf(!hasPrometheus)(
  'Prometheus reads the configuration of docker-compose.yml (Debian: apt-get install prometheus)',
  () => {
    assert.match(promtool(['check', 'config', '--syntax-only', `${root}deploy/compose/prometheus.yml`]), /SUCCESS/)
  },
)
