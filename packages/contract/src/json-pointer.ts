/** A JSON Pointer (RFC 6901) to the field or element `name` of what `parent` points to. */
export function pointerTo(parent: string, name: string | number): string {
  return `${parent}/${String(name).replaceAll('~', '~0').replaceAll('/', '~1')}`
}
