// Makes the fields of pieces from values that may be absent.

type Present<T> = { [K in keyof T]?: Exclude<T[K], undefined> }

/** The fields that have a value: a later piece of a source must not replace a field with nothing. */
export function present<T extends object>(fields: T): Present<T>
export function present(fields: object): object {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined))
}

/** The first line of a text that is not blank, as a title. */
export function firstLine(text: string): string {
  const start = text.trimStart()
  const end = start.search(/[\r\n]/)
  return (end === -1 ? start : start.slice(0, end)).trimEnd()
}
