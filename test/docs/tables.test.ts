import assert from 'node:assert/strict'
import { apiSettings } from '@sluice/api/settings'
import { dashboardSettings } from '@sluice/dashboard/settings'
import { metric, SECRETS, setting } from '@sluice/process'
import { workerSettings } from '@sluice/worker/settings'
import { test } from 'vitest'
import { metrics, settings } from './tables.ts'

const rowsOf = (table: string) => table.split('\n').slice(2)

test('a table has a row for each setting, with its rule and its default', () => {
  const table = settings({
    port: setting.wholeNumber({ env: 'PORT', description: 'The port.', default: 80, max: 90 }),
    site: setting.choice({
      env: 'SITE',
      description: 'A site.',
      default: 'a',
      choices: ['a', 'b'],
    }),
    password: setting.text({
      env: 'PASSWORD',
      description: 'Either | or.',
      default: null,
      secret: true,
    }),
  })
  assert.deepEqual(rowsOf(table), [
    '| `PORT` | `80` | from 0 to 90 | The port. |',
    '| `SITE` | `a` | one of a, b | A site. |',
    '| `PASSWORD` | none | text | Either \\| or. Secret: or `PASSWORD_FILE`. |',
  ])
})

test('exactly the settings that are secret can come from files', () => {
  const declared = Object.values({ ...apiSettings, ...workerSettings, ...dashboardSettings })
  assert.deepEqual(
    declared.flatMap(({ env, secret }) => (secret ? [env] : [])).toSorted(),
    SECRETS.toSorted(),
  )
})

test('a table has a row for each metric, with its type and labels', () => {
  const depth = metric.gauge({ name: 'sluice_depth', help: 'Depth.' })
  const ages = metric.gauge({ name: 'sluice_age_seconds', help: 'Age | old.', labels: ['lane'] })
  assert.deepEqual(rowsOf(metrics({ depth, ages })), [
    '| `sluice_depth` | gauge | Depth. |',
    '| `sluice_age_seconds{lane}` | gauge | Age \\| old. |',
  ])
})
