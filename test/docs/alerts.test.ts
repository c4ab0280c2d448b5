import assert from 'node:assert/strict'
import { test } from 'vitest'
import { needs } from '../runner/programs.ts'
import { promtool, readDocumented } from '../support/start-prometheus.ts'
import { readDocument } from './names.ts'

const namesOf = (text: string, form: RegExp) =>
  Array.from(text.matchAll(form), ([, name = '']) => name)
const alerts = namesOf(await readDocumented('alerts.yml'), /alert: (\w+)/g)

test('each alert has a row in the runbook, cases in which it fires and rests, and a real fault', async () => {
  const runbook = readDocument('docs/operate/failures.md')
  assert.deepEqual(namesOf(runbook, /^\| `(Sluice\w+)` \|.*\|.*\w.*\|$/gm), alerts)
  const cases = await readDocumented('alerts.test.yml')
  for (const form of [/alertname: (\w+)\n +exp_alerts/g, /alertname: (\w+) \}/g])
    assert.deepEqual(new Set(namesOf(cases, form)), new Set(alerts))
  const faults = readDocument('test/faults/alerts.full.test.ts')
  assert.deepEqual(new Set(namesOf(faults, /'(Sluice\w+)'/g)), new Set(alerts))
})

test('the alerts pass their tests', needs('prometheus'), () => {
  assert.match(promtool(['test', 'rules', 'alerts.test.yml']), /SUCCESS\s*$/)
  const found = new RegExp(`SUCCESS: ${alerts.length} rules found\\s*$`)
  assert.match(promtool(['check', 'config', 'prometheus.yml']), found)
})
