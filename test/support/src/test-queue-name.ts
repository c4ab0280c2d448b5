import { randomBytes } from 'node:crypto'

/** A queue name that no other test uses, so that tests share one Redis and never meet. */
export function testQueueName(): string {
  return `test-${randomBytes(6).toString('hex')}`
}
