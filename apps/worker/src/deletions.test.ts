import assert from 'node:assert/strict'
import type { Deletion, FetchedJob, StoredDeletion } from '@sluice/queue'
import { sourceIdOf } from '@sluice/store/ids'
import { test } from 'vitest'
import { createDeletions } from './deletions.ts'
import { requestsOf } from './job.ts'

const NAME = { service: 'slack', externalId: 'a' } as const
const STORED = sourceIdOf('acme', NAME)
const ABSENT = sourceIdOf('acme', { service: 'slack', externalId: 'b' })
const byId = (sourceId: string): Deletion => ({
  deletes: { sourceId },
  name: { service: 'id', externalId: sourceId },
})

test('a source that is deleted by its id is purged by its name, which the payload has before the deletion is stored', async () => {
  const written: unknown[] = []
  const purged: StoredDeletion[] = []
  const recorded: unknown[] = []
  const source = {
    ...NAME,
    id: STORED,
    title: 'A',
    description: null,
    status: 'TRANSCRIBED',
  } as const
  const numbers = { wordCount: 0, createdAt: 'then', acceptedAt: 'then' }
  const { name, record, purge } = createDeletions(
    { readSources: async () => ({ sources: [{ ...source, ...numbers }], rest: [] }) },
    {
      purge: async (deletion) => purged.push(deletion) > 0,
      writePayload: async (_, data) => void written.push(data.threads),
    },
    { write: async (records) => void recorded.push(...records) },
  )
  const threads = [byId(STORED), byId(ABSENT)]
  const job: FetchedJob = {
    id: 'j',
    name: 'id/a',
    lane: 'bulk',
    data: { tenant: 'acme', stamp: 1, requestId: 'r', retained: false, threads },
    digests: [],
    attempt: 1,
    redelivered: false,
    quarantined: false,
    waitsSince: 0,
    suppressions: '',
  }
  await Promise.all([record(job), record({ ...job, data: { ...job.data, recorded: true } })])
  const deletes = [{ sourceId: STORED }, { sourceId: ABSENT }]
  assert.deepEqual(recorded, [{ kind: 'deletion', id: 'j', stamp: 1, tenant: 'acme', deletes }])
  await name(job)
  assert.deepEqual(written, [[{ ...byId(STORED), name: NAME }, byId(ABSENT)]])
  assert.equal(written[0], job.data.threads)
  await name(job)
  const requests = requestsOf(job)
  const receipt = { source: { id: STORED, outcome: 'deleted', quotes: 0 } } as const
  await purge(job, requests, [receipt, receipt])
  assert.deepEqual(purged, [
    { tenant: 'acme', stamp: 1, sourceId: STORED, name: NAME },
    { tenant: 'acme', stamp: 1, sourceId: ABSENT, name: undefined },
  ])
})
