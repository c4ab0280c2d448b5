// The front door of the package: formats of export files.
import { appStoreFormat } from './app-store.ts'
import { csvFormat } from './csv.ts'
import { discordFormat } from './discord.ts'
import type { Format } from './format.ts'
import { githubFormat } from './github.ts'
import { mailFormat } from './mail/mail-format.ts'
import { playFormat } from './play.ts'
import { redditFormat } from './reddit.ts'
import { slackFormat } from './slack/slack-format.ts'
import { jsonFormat, ndjsonFormat, rejectedFormat } from './sluice-formats.ts'
import { telegramFormat } from './telegram.ts'
import { zendeskFormat } from './zendesk/zendesk.ts'

export * from './format.ts'
export { readBeginning } from './utf8-chunks.ts'

/** All formats, in the order in which they are asked whether they recognise files: those that look for less come later. */
export const formats: readonly Format[] = [
  slackFormat,
  discordFormat,
  telegramFormat,
  zendeskFormat,
  githubFormat,
  appStoreFormat,
  redditFormat,
  rejectedFormat,
  mailFormat,
  playFormat,
  ndjsonFormat,
  jsonFormat,
  csvFormat,
]
