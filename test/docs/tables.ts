import { apiSettings, IMPORT_ITEMS } from '@sluice/api/settings'
import { FAULT_CODES, LIMIT_DETAILS, type LimitName, PROBLEMS, SERVICES } from '@sluice/contract'
import { dashboardSettings } from '@sluice/dashboard/settings'
import { formats } from '@sluice/formats'
import { processSettings, settingsTable } from '@sluice/ops'
import { workerSettings } from '@sluice/worker/settings'

type Declarations = Parameters<typeof settingsTable>[0]

/** What the documents say by tables and lists that are made from the code, by the name that stands in the document. */
export const tables: Readonly<Record<string, () => string>> = {
  'settings-process': () => settings(processSettings),
  'settings-api': () => settings(ownOf(apiSettings)),
  'settings-worker': () => settings(ownOf(workerSettings)),
  'settings-dashboard': () => settings(ownOf(dashboardSettings)),
  limits,
  problems,
  'fault-codes': () => listOf(FAULT_CODES),
  services: () => listOf(SERVICES),
  formats: importFormats,
}

function ownOf(declarations: Declarations): Declarations {
  return Object.fromEntries(Object.entries(declarations).filter(([name]) => !(name in processSettings)))
}

function settings(declarations: Declarations): string {
  return `| Setting | Default | Must be | What it is for |\n| --- | --- | --- | --- |\n${settingsTable(declarations)}`
}

function limits(): string {
  const names = Object.keys(LIMIT_DETAILS) as LimitName[]
  const rows = names.map((name) => limitRow(name, LIMIT_DETAILS[name], apiSettings[name].env))
  const { value, ...ofItems } = IMPORT_ITEMS
  const head = ['| Limit | Default | Setting | What it bounds |', '| --- | --- | --- | --- |']
  return [...head, ...rows, limitRow('importItems', { default: value, ...ofItems })].join('\n')
}

type Limit = { default: number; unit: string; description: string }

function limitRow(name: string, limit: Limit, env?: string): string {
  const setting = env === undefined ? '' : `\`${env}\``
  return `| \`${name}\` | ${limit.default.toLocaleString('en')} ${limit.unit} | ${setting} | ${limit.description} |`
}

function problems(): string {
  const rows = Object.entries(PROBLEMS).map(([code, { status, title }]) => `| ${status} | \`${code}\` | ${title} |`)
  return ['| Status | `code` | `title` |', '| --- | --- | --- |', ...rows].join('\n')
}

function listOf(codes: readonly string[]): string {
  return `${codes.map((code) => `\`${code}\``).join(', ')}.`
}

function importFormats(): string {
  const rows = formats.map(({ name, description }) => `| \`${name}\` | ${description} |`)
  return ['| `--format` | files |', '| --- | --- |', ...rows].join('\n')
}
