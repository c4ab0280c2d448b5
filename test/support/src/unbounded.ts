/** Bounds of a queue that nothing exceeds. */
export const UNBOUNDED = {
  queueThreads: 1e15,
  queueBytes: 1e15,
  tenantShare: 1,
  waitingSeconds: 1e6,
  claimBytes: 1e15,
}
