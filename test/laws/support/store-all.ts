import { setTimeout as delay } from 'node:timers/promises'
import {
  type BatchStore,
  createBatchStore,
  type Runtime,
  type StoreCommands,
  type StoredAnswer,
  type StoreRequest,
} from '@sluice/store'

// Stores requests as a worker does: those whose thread another process is writing are submitted again, and after some time stored beside it.

/** The pause before busy requests are submitted again, in ms. */
const PAUSE_MS = 5

/** Resolves with the answers to all of the requests. @param patienceMs is how long busy requests wait before they are overdue. */
export async function storeAll(
  store: BatchStore,
  requests: readonly StoreRequest[],
  patienceMs = 50,
): Promise<Map<string, StoredAnswer>> {
  const answers = new Map<string, StoredAnswer>()
  const began = performance.now()
  for (let left = requests; left.length > 0; left = left.filter(({ id }) => !answers.has(id))) {
    if (left !== requests) await delay(PAUSE_MS)
    const isOverdue = performance.now() - began >= patienceMs
    const stored = await store.store(left.map((request) => ({ ...request, isOverdue })))
    for (const [id, answer] of stored) answers.set(id, answer)
  }
  return answers
}

/** Has requests stored by a process of their own, which then ends in order. */
export async function storeOnce(
  commands: StoreCommands,
  requests: readonly StoreRequest[],
  runtime?: Runtime,
): Promise<Map<string, StoredAnswer>> {
  const worker = createBatchStore(commands, runtime)
  const answers = await storeAll(worker, requests)
  await worker.close()
  return answers
}
