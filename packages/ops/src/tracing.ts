// Spans, made by hand with OpenTelemetry's API, which does nothing until `openTracing` registers a provider.
import type { Attributes, Context, Link, Span } from '@opentelemetry/api'
import { isSpanContextValid, ROOT_CONTEXT, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api'

export { type Span, SpanKind }

const TRACEPARENT = /^00-([\da-f]{32})-([\da-f]{16})-([\da-f]{2})$/

interface SpanOptions {
  kind?: SpanKind
  attributes?: Attributes
  /** The spans that this one serves, as `traceparent`. */
  links?: readonly string[]
}

/** Begins a span. @param parent a `traceparent` (W3C Trace Context, version 00); another text counts as none. */
export function startSpan(name: string, parent: string | undefined, { links = [], ...options }: SpanOptions): Span {
  const contexts = links.flatMap((link): Link[] => {
    const context = spanContextOf(link)
    return context === undefined ? [] : [{ context }]
  })
  return trace.getTracer('sluice').startSpan(name, { ...options, links: contexts }, contextOf(parent))
}

function contextOf(traceparent: string | undefined): Context {
  const parent = spanContextOf(traceparent)
  return parent === undefined ? ROOT_CONTEXT : trace.setSpanContext(ROOT_CONTEXT, parent)
}

function spanContextOf(traceparent = '') {
  const [, traceId = '', spanId = '', flags = ''] = TRACEPARENT.exec(traceparent) ?? []
  const context = { traceId, spanId, traceFlags: Number.parseInt(flags, 16), isRemote: true }
  return isSpanContextValid(context) ? context : undefined
}

/** Returns a span as its children name it, or undefined if nothing is traced. */
export function traceparentOf(span: Span | undefined): string | undefined {
  const context = span?.spanContext()
  if (context === undefined || !isSpanContextValid(context)) return undefined
  return `00-${context.traceId}-${context.spanId}-${context.traceFlags.toString(16).padStart(2, '0')}`
}

/** Returns the trace of a `traceparent`, for logs. */
export function traceIdOf(traceparent: string | undefined): string | undefined {
  return spanContextOf(traceparent)?.traceId
}

/** Works in a span, which says if the work failed. `work` gets the span as its children name it. */
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
    span.recordException(error instanceof Error ? error : String(error))
    span.setStatus({ code: SpanStatusCode.ERROR })
    throw error
  } finally {
    span.end()
  }
}
