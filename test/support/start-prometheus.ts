// Runs Debian's Prometheus on the processes of a test, by the configuration of docs/monitoring.
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort } from '@sluice/local'
import type { StartedProcess, TestScope } from '@sluice/test-support'
import { until } from './until.ts'

const documented = (name: string) => new URL(`../../docs/monitoring/${name}`, import.meta.url)

export const readDocumented = (name: string) => readFile(documented(name), 'utf8')

/**
 * Runs promtool in docs/monitoring, and returns its output, with its exit status if it is not 0.
 */
export function promtool(args: readonly string[], input = ''): string {
  const { status, stdout, stderr } = spawnSync('promtool', args, {
    cwd: documented('.'),
    input,
    encoding: 'utf8',
  })
  return `${stdout}${stderr}${status === 0 ? '' : `exit ${status}`}`
}

interface Result {
  metric: Record<string, string>
  value: [at: number, value: string]
}

/**
 * Scrapes these processes every two seconds: a worker waits for MongoDB for 1.5 s. The alerts rest
 * on the same conditions as documented, but for a second instead of minutes, and on rates of ten
 * seconds.
 */
export async function startPrometheus(t: TestScope, processes: readonly StartedProcess[]) {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-prometheus-'))
  const [config, alerts, port] = [
    await readDocumented('prometheus.yml'),
    await readDocumented('alerts.yml'),
    await freePort(),
  ]
  await writeFile(
    join(folder, 'prometheus.yml'),
    config
      .replace('scrape_interval: 15s', 'scrape_interval: 2s\n  scrape_timeout: 2s')
      .replace('evaluation_interval: 15s', 'evaluation_interval: 1s'),
  )
  await writeFile(
    join(folder, 'alerts.yml'),
    alerts.replaceAll(/for: \d+m/g, 'for: 1s').replaceAll(/\[\d+m\]/g, '[10s]'),
  )
  async function setTargets(scraped: readonly StartedProcess[]): Promise<void> {
    const lines = await Promise.all(
      scraped.map(({ line }) => line(({ adminPort }) => typeof adminPort === 'number')),
    )
    const targets = lines.map(({ adminPort }) => `'127.0.0.1:${adminPort}'`).join(', ')
    await writeFile(join(folder, 'targets.yml'), `- targets: [${targets}]\n`)
  }
  await setTargets(processes)
  const server = spawn(
    'prometheus',
    [
      '--config.file=prometheus.yml',
      '--storage.tsdb.path=data',
      `--web.listen-address=127.0.0.1:${port}`,
    ],
    { cwd: folder, stdio: 'ignore' },
  )
  t.onTestFinished(async () => {
    server.kill('SIGTERM')
    if (server.exitCode === null) await once(server, 'exit')
    await rm(folder, { recursive: true })
  })

  async function ask(path: string, of: Record<string, string> = {}) {
    const response = await fetch(
      `http://127.0.0.1:${port}/api/v1/${path}?${new URLSearchParams(of)}`,
    )
    const { status, data, error } = Object(await response.json())
    if (status !== 'success') throw new Error(`${path} ${JSON.stringify(of)}: ${error}`)
    return data
  }
  /** The samples of a query. @throws if Prometheus refuses it. */
  async function query(text: string): Promise<Result[]> {
    return (await ask('query', { query: text })).result
  }
  const targetsUp = () =>
    query('up == 1').then(
      (up) => up.length === processes.length,
      () => false,
    )
  await until('Prometheus has scraped all processes', targetsUp)
  return {
    query,
    /** Writes the file of targets again, which Prometheus watches. */
    setTargets,
    /** The names of the alerts that fire. */
    async firing(): Promise<string[]> {
      const all: { labels: { alertname: string }; state: string }[] = (await ask('alerts')).alerts
      return [
        ...new Set(
          all.filter(({ state }) => state === 'firing').map(({ labels }) => labels.alertname),
        ),
      ].sort()
    },
  }
}
