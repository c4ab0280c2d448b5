/**
 * Whether a JSON Pointer (RFC 6901) points to something in a document, or to a field that an object
 * in it lacks.
 */
export function resolvesIn(document: unknown, pointer: string): boolean {
  if (pointer === '') return true
  if (!pointer.startsWith('/')) return false
  const names = pointer
    .slice(1)
    .split('/')
    .map((name) => name.replaceAll('~1', '/').replaceAll('~0', '~'))
  const last = names.pop() ?? ''
  let at = document
  for (const name of names) {
    if (!has(at, name)) return false
    at = Object.entries(at).find(([key]) => key === name)?.[1]
  }
  return has(at, last) || (typeof at === 'object' && at !== null && !Array.isArray(at))
}

function has(value: unknown, name: string): value is object {
  return typeof value === 'object' && value !== null && Object.hasOwn(value, name)
}
