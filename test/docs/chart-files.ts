// The files of the Helm chart that are made from the declared settings, or copied from
// docs/monitoring: Helm reads only what is in the folder of a chart.
import { readFileSync } from 'node:fs'
import { apiSettings } from '@sluice/api/settings'
import { dashboardSettings } from '@sluice/dashboard/settings'
import { type Declarations, SECRETS, type Setting } from '@sluice/process'
import { workerSettings } from '@sluice/worker/settings'

const CHART = 'deploy/helm/sluice'
const read = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8')

/** What the templates set themselves. */
const OF_CHART = ['HOST', 'PORT', 'ADMIN_HOST', 'ADMIN_PORT', 'SHUTDOWN_GRACE_SECONDS', ...SECRETS]

const settings = [
  ...settingsOf(apiSettings),
  ...settingsOf(workerSettings),
  ...settingsOf(dashboardSettings),
]

function settingsOf(declarations: Declarations): Setting<unknown>[] {
  return Object.values(declarations).filter(({ env }) => !OF_CHART.includes(env))
}

/** Each file, with the function that returns its text. */
export const chartFiles: Readonly<Record<string, () => string>> = {
  [`${CHART}/values.schema.json`]: valuesSchema,
  [`${CHART}/files/settings.json`]: () => `${JSON.stringify(checkedByTemplates())}\n`,
  [`${CHART}/files/alerts.yml`]: () => read('docs/monitoring/alerts.yml'),
  [`${CHART}/files/grafana.json`]: () => read('docs/monitoring/grafana.json'),
}

/** What the schema cannot check: values that must agree, and numbers, which are strings there. */
function checkedByTemplates(): object {
  const checked = settings.filter(({ agreed, range }) => agreed || range)
  return Object.fromEntries(
    checked.map(({ env, agreed, bound, range }) => [
      env,
      { agreed: agreed || undefined, bound, ...range },
    ]),
  )
}

/**
 * The schema as it is, with the definitions of settings as the code has them now. `biome check
 * --write` formats it.
 */
function valuesSchema(): string {
  const { definitions, ...schema } = JSON.parse(read(`${CHART}/values.schema.json`))
  const made = {
    settings: closed(
      Object.fromEntries(settings.map((setting) => [setting.env, schemaOf(setting)])),
    ),
    apiSettings: ofKind(apiSettings),
    workerSettings: ofKind(workerSettings),
    dashboardSettings: ofKind(dashboardSettings),
  }
  return `${JSON.stringify({ ...schema, definitions: { ...definitions, ...made } })}\n`
}

function ofKind(declarations: Declarations): object {
  const references = settingsOf(declarations).map(({ env }) => [
    env,
    { $ref: `#/definitions/settings/properties/${env}` },
  ])
  return closed(Object.fromEntries(references))
}

function closed(properties: object): object {
  return { type: 'object', additionalProperties: false, properties }
}

/** An empty text is no value. Helm would write a large number as 1.07e+09. */
function schemaOf({ shape, bound }: Setting<unknown>): object {
  return { type: 'string', description: `Must be ${bound}.`, pattern: `^$|${shape.source}` }
}
