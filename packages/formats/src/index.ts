// The front door of the package: formats of export files.
import { csvFormat } from './csv.ts'
import { discordFormat } from './discord.ts'
import type { Format } from './format.ts'
import { jsonFormat } from './json.ts'
import { ndjsonFormat } from './ndjson.ts'
import { redditFormat } from './reddit.ts'
import { rejectedFormat } from './rejected.ts'
import { slackFormat } from './slack/slack-format.ts'
import { telegramFormat } from './telegram.ts'

export * from './format.ts'

/** All formats, in the order in which they are asked whether they recognise files: those that look for less come later. */
export const formats: readonly Format[] = [
  slackFormat,
  discordFormat,
  telegramFormat,
  redditFormat,
  rejectedFormat,
  ndjsonFormat,
  jsonFormat,
  csvFormat,
]
