import type { Declarations } from './read-settings.ts'
import type { Setting } from './setting.ts'

/** The rows of a Markdown table (Setting, Default, Must be, What it is for), a line a setting, in the order declared. */
export function settingsTable(declarations: Declarations): string {
  return Object.values(declarations).map(row).join('\n')
}

function row(setting: Setting<unknown>): string {
  const purpose = setting.secret ? `${setting.description} Secret.` : setting.description
  const cells = [`\`${setting.env}\``, fallback(setting), setting.bound, purpose]
  return `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`
}

function fallback(setting: Setting<unknown>): string {
  if (setting.fallback === undefined) return 'required'
  return setting.fallback === null ? 'none' : `\`${setting.fallback}\``
}
