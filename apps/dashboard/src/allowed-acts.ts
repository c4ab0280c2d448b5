import type { BeforeHook } from '@bull-board/api/typings/app'

/** What people may do to jobs: have them tried (again), and hold the queue for a while. */
const ALLOWED = new Set([
  '/api/queues/:queueName/:jobId/retry',
  '/api/queues/:queueName/retry/:queueStatus',
  '/api/queues/:queueName/:jobId/promote',
  '/api/queues/:queueName/promote',
  '/api/queues/:queueName/pause',
  '/api/queues/:queueName/resume',
  '/api/queues/pause',
  '/api/queues/resume',
])

/**
 * Refuses every act that would lose an accepted request (remove, clean, empty) or write a payload that no caller sent: what the page shows
 * of a payload is cut, and editing it would store it cut.
 */
export const allowedActs: BeforeHook = ({ method, route }) => {
  if (method === 'get' || ALLOWED.has(route)) return { allow: true }
  return { allow: false, status: 405, message: 'An accepted request is neither removed nor changed here.' }
}
