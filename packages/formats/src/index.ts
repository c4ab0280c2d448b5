// The front door of the package: formats of export files.
export * from './format.ts'
export { ndjsonFormat } from './ndjson.ts'
