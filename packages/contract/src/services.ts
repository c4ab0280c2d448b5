/** The kinds of source that a request may name in `service`. A closed list: another value is a `enum` fault. */
export const SERVICES = [
  'x',
  'zendesk',
  'linear',
  'googledoc',
  'youtube',
  'slack',
  'email',
  'twitter',
  'facebook',
  'reddit',
  'file',
  'play_store',
  'app_store',
  'spreadsheet',
  'telegram',
  'discord',
  'imessage',
  'custom',
] as const

export type Service = (typeof SERVICES)[number]
