// The front door of the package: formats of export files.

export { appStoreFormat } from './app-store.ts'
export { csvFormat } from './csv.ts'
export * from './format.ts'
export { githubFormat } from './github.ts'
export { jsonFormat } from './json.ts'
export { ndjsonFormat } from './ndjson.ts'
export { playFormat } from './play.ts'
export { redditFormat } from './reddit.ts'
export { rejectedFormat } from './rejected.ts'
export { zendeskFormat } from './zendesk/zendesk.ts'
