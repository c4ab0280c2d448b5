import { setTimeout as delay } from 'node:timers/promises'
import {
  type BatchStore,
  createBatchStore,
  type PostRequest,
  type Runtime,
  type StoreAnswer,
  type StoreCommands,
  type StoredAnswer,
  type StoreRequest,
} from '@sluice/store'

// Stores requests as a worker does: those whose thread another process is summing are submitted
// again.

/** The pause before such requests are submitted again, in ms. */
const PAUSE_MS = 5

/** Resolves with the answers to all of the requests. */
export function storeAll(
  store: BatchStore,
  requests: readonly PostRequest[],
): Promise<Map<string, StoredAnswer>>
export function storeAll(
  store: BatchStore,
  requests: readonly StoreRequest[],
): Promise<Map<string, StoreAnswer>>
export async function storeAll(
  store: BatchStore,
  requests: readonly StoreRequest[],
): Promise<Map<string, StoreAnswer>> {
  const answers = new Map<string, StoreAnswer>()
  for (let left = requests; left.length > 0; left = left.filter(({ id }) => !answers.has(id))) {
    if (left !== requests) await delay(PAUSE_MS)
    for (const [id, answer] of await store.store(left)) answers.set(id, answer)
  }
  return answers
}

/** Has requests stored by a process of their own, which then ends in order. */
export function storeOnce(
  commands: StoreCommands,
  requests: readonly PostRequest[],
  runtime?: Runtime,
): Promise<Map<string, StoredAnswer>>
export function storeOnce(
  commands: StoreCommands,
  requests: readonly StoreRequest[],
  runtime?: Runtime,
): Promise<Map<string, StoreAnswer>>
export async function storeOnce(
  commands: StoreCommands,
  requests: readonly StoreRequest[],
  runtime?: Runtime,
): Promise<Map<string, StoreAnswer>> {
  const worker = createBatchStore(commands, runtime)
  const answers = await storeAll(worker, requests)
  await worker.settle()
  return answers
}
