// The front door of the package: formats of export files.

export { discordFormat } from './discord.ts'
export * from './format.ts'
export { mailFormat } from './mail/mail-format.ts'
export { slackFormat } from './slack/slack-format.ts'
export { telegramFormat } from './telegram.ts'
