// The front door of the package: formats of export files.

export { csvFormat } from './csv.ts'
export { discordFormat } from './discord.ts'
export * from './format.ts'
export { jsonFormat } from './json.ts'
export { ndjsonFormat } from './ndjson.ts'
export { redditFormat } from './reddit.ts'
export { rejectedFormat } from './rejected.ts'
export { slackFormat } from './slack/slack-format.ts'
export { telegramFormat } from './telegram.ts'
