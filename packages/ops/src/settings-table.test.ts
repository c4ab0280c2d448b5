import assert from 'node:assert/strict'
import { test } from 'vitest'
import { setting, settingsTable } from './setting.ts'

test('the table has a row for each setting, with its rule and its default', () => {
  const table = settingsTable({
    port: setting.wholeNumber({ env: 'PORT', description: 'The port.', default: 80, max: 90 }),
    site: setting.url({ env: 'SITE', description: 'A site.', default: null, protocols: ['https:'] }),
    password: setting.text({ env: 'PASSWORD', description: 'Either | or.', secret: true }),
  })
  assert.deepEqual(table.split('\n'), [
    '| `PORT` | `80` | a whole number from 0 to 90 | The port. |',
    '| `SITE` | none | a URL that begins with https:// | A site. |',
    '| `PASSWORD` | required | text of at most 1000 characters | Either \\| or. Secret. |',
  ])
})
