import { apiMetrics } from '@sluice/api/metrics'
import { apiSettings, IMPORT_ITEMS } from '@sluice/api/settings'
import {
  DEFAULT_LIMITS,
  fieldNames,
  LIMIT_DETAILS,
  type LimitName,
  PROBLEMS,
  SERVICES,
  ThreadRequestSchema,
  VALIDATION_ERROR_CODES,
} from '@sluice/contract'
import { dashboardSettings } from '@sluice/dashboard/settings'
import { FORMAT_OPTIONS, formats, OPTION_NAMES, readersOf } from '@sluice/importer'
import {
  agreedSettings,
  type Declarations,
  dashboardUrlSetting,
  type MetricDeclarations,
  mongoMetrics,
  processMetrics,
  processSettings,
} from '@sluice/process'
import { workerMetrics } from '@sluice/worker/metrics'
import { workerSettings } from '@sluice/worker/settings'

/** What several processes read, in tables of their own. */
const sharedSettings = { ...agreedSettings, dashboardUrl: dashboardUrlSetting }
const allSettings = { ...processSettings, ...sharedSettings }

const limitNames = Object.keys(LIMIT_DETAILS) as LimitName[]
/** Settings that the table of limits has. */
const limitSettings = Object.fromEntries(limitNames.map((name) => [name, apiSettings[name]]))

const thread = ThreadRequestSchema(DEFAULT_LIMITS)

/**
 * What the documents say by tables and lists that are made from the code, by the name that stands in
 * the document.
 */
export const tables: Readonly<Record<string, () => string>> = {
  'settings-process': () => settings(processSettings),
  'settings-shared': () => settings(sharedSettings),
  'settings-api': () => settings(ownOf(apiSettings, { ...allSettings, ...limitSettings })),
  'settings-worker': () => settings(ownOf(workerSettings, allSettings)),
  'settings-dashboard': () => settings(ownOf(dashboardSettings, allSettings)),
  'metrics-process': () => metrics(processMetrics),
  'metrics-mongodb': () => metrics(mongoMetrics),
  'metrics-api': () => metrics(ownOf(apiMetrics, mongoMetrics)),
  'metrics-worker': () => metrics(ownOf(workerMetrics, mongoMetrics)),
  limits,
  problems,
  'fault-codes': () => listOf(VALIDATION_ERROR_CODES),
  services: () => listOf(SERVICES),
  'source-fields': () => fields(thread),
  'quote-fields': () => fields(thread.properties.quotes.items),
  'table-fields': fieldsOfTables,
  formats: importFormats,
  'format-titles': () => `${formats.map(({ title }) => title).join(', ')}.`,
  'format-options': formatOptions,
}

/** The declarations that are not shared with other processes. */
function ownOf<Declared>(
  declarations: Readonly<Record<string, Declared>>,
  shared: object,
): Record<string, Declared> {
  const others = new Set(Object.values(shared))
  return Object.fromEntries(
    Object.entries(declarations).filter(([, declared]) => !others.has(declared)),
  )
}

/**
 * A table with a row for each setting, in the order declared. The page says that numbers are whole.
 */
export function settings(declarations: Declarations): string {
  const rows = Object.values(declarations).map(
    ({ env, description, fallback, bound, secret, needs }) => {
      const needed = needs.length === 0 ? '' : ` Needs ${needs.join(', ')}.`
      const purpose = description + needed + (secret ? ` Secret: or \`${env}_FILE\`.` : '')
      const limits = bound.replace(/^a whole number (of )?| of at most \d+ characters$/, '')
      return row([`\`${env}\``, fallback === null ? 'none' : `\`${fallback}\``, limits, purpose])
    },
  )
  return [
    '| Setting | Default | Must be | What it is for |',
    '| --- | --- | --- | --- |',
    ...rows,
  ].join('\n')
}

/** A table with a row for each metric, in the order declared. */
export function metrics(declarations: MetricDeclarations): string {
  const rows = Object.values(declarations).map(({ name, type, labels, help }) => {
    const labelled = labels.length === 0 ? name : `${name}{${labels.join(', ')}}`
    return row([`\`${labelled}\``, type, help])
  })
  return ['| Metric | Type | Meaning |', '| --- | --- | --- |', ...rows].join('\n')
}

function row(cells: readonly string[]): string {
  return `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`
}

function limits(): string {
  const rows = limitNames.map((name) =>
    limitRow(name, LIMIT_DETAILS[name], `\`${apiSettings[name].env}\``),
  )
  const { value, ...ofItems } = IMPORT_ITEMS
  const items = limitRow('importItems', { default: value, ...ofItems }, '')
  const head = ['| limit | default | what it bounds | setting |', '| --- | --- | --- | --- |']
  return [...head, ...rows, items].join('\n')
}

type Limit = { default: number; unit: string; description: string }

function limitRow(name: string, limit: Limit, setting: string): string {
  const size = `${limit.default.toLocaleString('en')} ${limit.unit}`
  return row([`\`${name}\``, size, limit.description, setting])
}

function problems(): string {
  const kinds = Object.entries(PROBLEMS)
  const statuses = [...new Set(kinds.map(([, { status }]) => status))].toSorted()
  const rows = statuses.map((status) => {
    const codes = kinds.filter(([, kind]) => kind.status === status).map(([code]) => `\`${code}\``)
    return row([`${status}`, codes.join(', ')])
  })
  return ['| status | `code` |', '| --- | --- |', ...rows].join('\n')
}

type Fields = { required?: readonly string[]; properties: object }

function fields({ required = [], properties }: Fields): string {
  const rows = Object.entries(properties).map(([name, { description }]) =>
    row([`\`${name}\`${required.includes(name) ? ' (required)' : ''}`, description]),
  )
  return ['| field | meaning |', '| --- | --- |', ...rows].join('\n')
}

/**
 * Which fields a row of a table has. A field of both kinds is the quote's, and the source's with
 * `source.`.
 */
function fieldsOfTables(): string {
  const { source, quote } = fieldNames(thread)
  const shared = source.filter((name) => quote.includes(name))
  const named = (names: readonly string[]) => names.map((name) => `\`${name}\``).join(', ')
  return [
    '| field | belongs to |',
    '| --- | --- |',
    row([
      named(source.filter((name) => name !== 'quotes' && !shared.includes(name))),
      'the source',
    ]),
    row([named(quote), 'the quote']),
    row([named(shared.map((name) => `source.${name}`)), 'the source']),
  ].join('\n')
}

function listOf(codes: readonly string[]): string {
  return `${codes.map((code) => `\`${code}\``).join(', ')}.`
}

function formatOptions(): string {
  const rows = OPTION_NAMES.map((name) => {
    const { flags, description } = FORMAT_OPTIONS[name]
    return row([`\`${flags}\``, readersOf(name, formats), description])
  })
  return ['| option | formats | meaning |', '| --- | --- | --- |', ...rows].join('\n')
}

function importFormats(): string {
  const rows = formats.map(({ name, description, sourceIs }) =>
    row([`\`${name}\``, description, sourceIs]),
  )
  return ['| `--format` | files | a source is |', '| --- | --- | --- |', ...rows].join('\n')
}
