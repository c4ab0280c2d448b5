/** Bounds of a queue that nothing exceeds. */
export const UNBOUNDED = { threads: 1e15, bytes: 1e15, tenantShare: 1, waitingSeconds: 1e6, claimBytes: 1e15 }
