// Creates spans with OpenTelemetry's API. They are sent only after `openTracing` has registered an
// exporter.
import { createRequire } from 'node:module'
import { setTimeout as delay } from 'node:timers/promises'
import type * as OpenTelemetry from '@opentelemetry/api'
import type { Attributes, Link, Span } from '@opentelemetry/api'

// Required, because prom-client requires it, too: an import would load its 51 modules once more.
const api: typeof OpenTelemetry = createRequire(import.meta.url)('@opentelemetry/api')
const { isSpanContextValid, ROOT_CONTEXT, SpanStatusCode, trace } = api
export const { SpanKind } = api
export type { Span }

const TRACEPARENT = /^00-([\da-f]{32})-([\da-f]{16})-([\da-f]{2})$/

interface SpanOptions {
  kind?: OpenTelemetry.SpanKind
  attributes?: Attributes
  /**
   * Links to spans of other traces whose work this span includes, as `traceparent`. For example, a
   * batch links to its jobs.
   */
  links?: readonly string[]
}

/**
 * Begins a span.
 * @param parent a `traceparent` (W3C Trace Context, version 00). Any other text counts as none.
 */
export function startSpan(
  name: string,
  parent: string | undefined,
  { links = [], ...options }: SpanOptions,
): Span {
  const contexts = links.flatMap((link): Link[] => {
    const context = spanContextOf(link)
    return context === undefined ? [] : [{ context }]
  })
  const from = spanContextOf(parent)
  const context = from === undefined ? ROOT_CONTEXT : trace.setSpanContext(ROOT_CONTEXT, from)
  return trace.getTracer('sluice').startSpan(name, { ...options, links: contexts }, context)
}

function spanContextOf(traceparent = '') {
  const [, traceId = '', spanId = '', flags = ''] = TRACEPARENT.exec(traceparent) ?? []
  const context = { traceId, spanId, traceFlags: Number.parseInt(flags, 16), isRemote: true }
  return isSpanContextValid(context) ? context : undefined
}

/**
 * Returns the `traceparent` with which children name a span as their parent. Without a collector,
 * returns the `traceparent` of the span's parent.
 */
export function traceparentOf(span: Span | undefined): string | undefined {
  const context = span?.spanContext()
  if (context === undefined || !isSpanContextValid(context)) return undefined
  return `00-${context.traceId}-${context.spanId}-${context.traceFlags.toString(16).padStart(2, '0')}`
}

/** Returns the id of the trace from a valid `traceparent`. */
export function traceIdOf(traceparent: string): string {
  return traceparent.slice(3, 35)
}

/**
 * Runs `work` in a span, which records whether the work failed. `work` gets the span's
 * `traceparent`.
 */
export async function inSpan<Result>(
  name: string,
  parent: string | undefined,
  options: SpanOptions,
  work: (traceparent: string | undefined) => Promise<Result>,
): Promise<Result> {
  const span = startSpan(name, parent, options)
  try {
    return await work(traceparentOf(span))
  } catch (error) {
    // Only the name: a message may quote a thread, and no deletion reaches a collector.
    span.recordException({ name: error instanceof Error ? error.name : 'Error' })
    span.setStatus({ code: SpanStatusCode.ERROR })
    throw error
  } finally {
    span.end()
  }
}

/** A process that ends waits at most this long for a collector that is unavailable. */
const LAST_SPANS_MS = 1_000

/**
 * If there is an endpoint, sends the spans of this process to it. Returns a function that sends the
 * last spans.
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
