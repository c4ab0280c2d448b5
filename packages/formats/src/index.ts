// The front door of the package: formats of export files.
export * from './format.ts'
export { slackFormat } from './slack/slack-format.ts'
