import assert from 'node:assert/strict'
import { test } from 'vitest'
import { needs } from '../runner/programs.ts'
import { promtool, readDocumented } from '../support/start-prometheus.ts'
import { readDocument } from './names.ts'

const namesIn = (text: string, key: string) =>
  Array.from(text.matchAll(new RegExp(`${key}: (\\w+)`, 'g')), ([, name = '']) => name)

test('each alert has a row in the runbook, and a case in which it fires', async () => {
  const alerts = namesIn(await readDocumented('alerts.yml'), 'alert')
  assert.notEqual(alerts.length, 0)
  const rows = Array.from(
    readDocument('docs/operate/failures.md').matchAll(/^\| `(Sluice\w+)` \|.*\|.*\w.*\|$/gm),
    ([, name]) => name,
  )
  assert.deepEqual(rows, alerts)
  const fired = namesIn(await readDocumented('alerts.test.yml'), 'alertname').sort()
  assert.deepEqual([...new Set(fired)], alerts.sort())
})

test('the alerts pass their tests', needs('prometheus'), () => {
  assert.match(promtool(['test', 'rules', 'alerts.test.yml']), /SUCCESS\s*$/)
  assert.match(promtool(['check', 'config', 'prometheus.yml']), /SUCCESS: 11 rules found\s*$/)
})
