// What the programs `sluice` and `start` share: output, errors, and access to the Sluice and the
// Redis that they use.
export * from './find-api.ts'
export * from './instance.ts'
export * from './process-facts.ts'
export * from './progress.ts'
export * from './run-program.ts'
export * from './stop-requests.ts'
export * from './terminal.ts'
export * from './with-redis.ts'
