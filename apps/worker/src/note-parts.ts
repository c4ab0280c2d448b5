import type { BatchCounts, Batches, BatchPart, BatchProblem, EndedJob } from '@sluice/queue'

/** Notes what jobs came to whose batches nobody waits for. */
export async function noteParts(batches: Batches, jobs: readonly EndedJob[]): Promise<void> {
  await Promise.all(
    jobs.map(async ({ id, batch, ending }) => {
      if (batch !== undefined) await batches.endPart(batch.id, id, partOf(ending.receipts, batch.items))
    }),
  )
}

function partOf(receipts: EndedJob['ending']['receipts'], items: NonNullable<EndedJob['batch']>['items']): BatchPart {
  const counts: BatchCounts = { created: 0, updated: 0, unchanged: 0, failed: 0 }
  const problems: BatchProblem[] = []
  receipts.forEach((receipt, at) => {
    counts[receipt?.source.outcome ?? 'failed'] += 1
    const item = items[at]
    if (receipt === null && item !== undefined) problems.push(item)
  })
  return { counts, problems }
}
