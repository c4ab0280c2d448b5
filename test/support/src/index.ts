export { testDatabase } from './test-database.ts'
export { testQueueName } from './test-queue-name.ts'
export { requiredUrl } from './required-url.ts'
