/** How an import ended. The exit codes are the same as dsbulk's. */
export const EXIT_CODES = {
  completed: 0,
  completed_with_rejected: 1,
  completed_with_unread: 1,
  completed_without_threads: 1,
  gave_up: 2,
  failed: 3,
  interrupted: 4,
  crashed: 5,
} as const
