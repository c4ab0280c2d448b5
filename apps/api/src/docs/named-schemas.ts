// Moves the schemas that have a title into the components of an OpenAPI document, so that each stands there once and has a name.

/**
 * Returns a document in which each schema with a `title` is a reference to its place in `components`. Schemas of one title must be the
 * same, as those of requests and answers are.
 */
export function withNamedSchemas<T extends { components: { schemas: Record<string, object> } }>(document: T): T {
  const schemas: Record<string, unknown> = {}
  // `info` has a title and is no schema.
  const { components, ...rest } = document
  const replaced = Object.fromEntries(
    Object.entries(rest).map(([name, part]) => [name, name === 'info' ? part : replaceNamed(part, schemas)]),
  )
  return Object.assign({}, document, replaced, { components: { ...components, schemas } })
}

function replaceNamed(value: unknown, schemas: Record<string, unknown>): unknown {
  if (Array.isArray(value)) return value.map((element) => replaceNamed(element, schemas))
  if (typeof value !== 'object' || value === null) return value
  const copy: Record<string, unknown> = {}
  for (const [name, part] of Object.entries(value)) copy[name] = EXAMPLES.has(name) ? part : replaceNamed(part, schemas)
  if (typeof copy.title !== 'string' || typeof copy.type !== 'string') return copy
  schemas[copy.title] = copy
  return { $ref: `#/components/schemas/${copy.title}` }
}

/** What stands in examples is data: a source has a title too. */
const EXAMPLES = new Set(['example', 'examples', 'const', 'enum'])
