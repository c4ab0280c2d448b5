import assert from 'node:assert/strict'
import type { Hit } from '@sluice/contract'
import { UserError } from '@sluice/terminal'
import { test } from 'vitest'
import type { AdminClient } from './admin-client.ts'
import { tailCommand } from './hits-commands.ts'

test('a tail goes on after an answer that failed, says once why, and misses no job', async () => {
  const job = (id: string): Hit => ({
    kind: 'job',
    id,
    tenant: 'acme',
    endedAt: '2024-05-01T00:00:00.000Z',
  })
  const unavailable = new UserError('Redis is unavailable')
  const lists = [undefined, unavailable, unavailable, undefined, new Error('the end')]
  const asked: (string | undefined)[] = []
  const client = {
    async recent(after?: string) {
      asked.push(after)
      return { jobs: [job(`since ${after}`)], next: String(asked.length) }
    },
    async list() {
      const error = lists.shift()
      if (error !== undefined) throw error
      return { jobs: [] }
    },
  }
  const printed: string[] = []
  const shown: string[] = []
  const command = tailCommand({
    openClient: async () => client as Partial<AdminClient> as AdminClient,
    print: (line) => void printed.push(JSON.parse(line).id),
    show: (line) => void shown.push(line),
  })
  await assert.rejects(command.parseAsync(['--json'], { from: 'user' }), /the end/)
  assert.deepEqual(asked, [undefined, '1', '1', '1', '4'])
  assert.deepEqual(printed, ['since undefined', 'since 1'])
  assert.deepEqual(shown, ['Redis is unavailable'])
})

test('a tail whose first answer fails ends with its message', async () => {
  const refused = new UserError('The API cannot be reached')
  const client: Partial<AdminClient> = { recent: () => Promise.reject(refused) }
  const openClient = async () => client as AdminClient
  const command = tailCommand({ openClient, print: assert.fail, show: assert.fail })
  await assert.rejects(command.parseAsync([], { from: 'user' }), refused)
})
