// Sends the spans of a process to a collector. The SDK is loaded only if the settings name one.
import { setTimeout as delay } from 'node:timers/promises'
import { trace } from '@opentelemetry/api'
import { setting } from './settings.ts'

/** The settings of traces. The exporter reads the endpoint, and OTEL_EXPORTER_OTLP_HEADERS, from the environment. */
export const tracingSettings = {
  otlpEndpoint: setting.text({
    env: 'OTEL_EXPORTER_OTLP_ENDPOINT',
    description:
      'Where traces are sent, by OTLP over HTTP in JSON, such as http://127.0.0.1:4318. Without it nothing is traced; ids of the traces of callers are passed on all the same.',
    default: null,
    maxLength: 2_000,
    pattern: /^https?:\/\/\S+$/,
    bound: 'a URL that begins with http:// or https://',
  }),
  traceRatio: setting.number({
    env: 'OTEL_TRACES_SAMPLER_ARG',
    description: 'The share of traces that are recorded, of those that begin here. A caller decides for its own.',
    default: 1,
    max: 1,
  }),
}

/** A collector that is away must not hold up the end of a process. */
const LAST_SPANS_MS = 1_000

/**
 * Sends the spans of this process to the endpoint, if there is one.
 *
 * @returns a function that sends the last ones, within `LAST_SPANS_MS`. It never throws.
 */
export async function openTracing(
  process: string,
  { otlpEndpoint, traceRatio }: { otlpEndpoint: string | null; traceRatio: number },
): Promise<() => Promise<void>> {
  if (otlpEndpoint === null) return async () => {}
  const [{ OTLPTraceExporter }, { resourceFromAttributes }, sdk] = await Promise.all([
    import('@opentelemetry/exporter-trace-otlp-http'),
    import('@opentelemetry/resources'),
    import('@opentelemetry/sdk-trace'),
  ])
  const provider = new sdk.TracerProvider({
    resource: resourceFromAttributes({ 'service.name': `sluice-${process}` }),
    sampler: new sdk.ParentBasedSampler({ root: new sdk.TraceIdRatioBasedSampler(traceRatio) }),
    spanProcessors: [new sdk.BatchSpanProcessor({ exporter: new OTLPTraceExporter() })],
  })
  trace.setGlobalTracerProvider(provider)
  return async () => {
    const sent = provider.shutdown().catch(() => {})
    await Promise.race([sent, delay(LAST_SPANS_MS, undefined, { ref: false })])
  }
}
