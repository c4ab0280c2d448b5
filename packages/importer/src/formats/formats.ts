// All formats of export files.
import { discordFormat } from './chats/discord.ts'
import { telegramFormat } from './chats/telegram.ts'
import { csvFormat } from './csv/csv-format.ts'
import { spreadsheetFormat } from './csv/spreadsheet-format.ts'
import { facebookFormat } from './facebook/facebook.ts'
import type { Format } from './format.ts'
import { githubFormat } from './forums/github.ts'
import { redditFormat } from './forums/reddit.ts'
import { googledocFormat } from './googledoc/googledoc.ts'
import { imessageFormat } from './imessage/imessage.ts'
import { jiraFormat } from './jira/jira.ts'
import { linearFormat } from './linear/linear.ts'
import { mailFormat } from './mail/mail-format.ts'
import { mattermostFormat } from './mattermost/mattermost.ts'
import { appStoreFormat } from './reviews/app-store.ts'
import { playFormat } from './reviews/play.ts'
import { slackFormat } from './slack/slack-format.ts'
import { createRejectedFormat } from './sluice/rejected-format.ts'
import { jsonFormat, ndjsonFormat } from './sluice/sluice-formats.ts'
import { whatsappFormat } from './whatsapp/whatsapp.ts'
import { xFormat } from './x/x.ts'
import { youtubeFormat } from './youtube/youtube.ts'
import { zendeskFormat } from './zendesk/zendesk.ts'

/** Asked in this order whether they recognise a file: those that require less come later. */
const ofExports = {
  slack: slackFormat,
  discord: discordFormat,
  telegram: telegramFormat,
  x: xFormat,
  imessage: imessageFormat,
  zendesk: zendeskFormat,
  linear: linearFormat,
  jira: jiraFormat,
  github: githubFormat,
  youtube: youtubeFormat,
  googledoc: googledocFormat,
  'app-store': appStoreFormat,
  reddit: redditFormat,
  facebook: facebookFormat,
  mattermost: mattermostFormat,
  whatsapp: whatsappFormat,
  mail: mailFormat,
  play: playFormat,
  ndjson: ndjsonFormat,
  json: jsonFormat,
  csv: csvFormat,
  spreadsheet: spreadsheetFormat,
} satisfies Readonly<Record<string, Format>>

/** The tests use this type, and do not compile until a new format has examples. */
export type FormatName = keyof typeof ofExports | 'rejected'

const exported = Object.values(ofExports)

export const formats: readonly Format[] = [...exported, createRejectedFormat(exported)]
