/** Redis can't be reached or did not answer in time. Whether a job was added is not known, and adding it again does no harm. */
export class QueueUnavailableError extends Error {
  constructor(cause?: unknown) {
    super('the queue can not be reached', { cause })
    this.name = 'QueueUnavailableError'
  }
}
