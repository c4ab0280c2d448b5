// Shows values to people on a terminal: aligned cells, moments, and texts that others have chosen.

/** The lines of a table: each column is as wide as its longest cell. */
export function tableLines(rows: readonly (readonly string[])[]): string[] {
  const widths = rows[0]?.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0))) ?? []
  return rows.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd(),
  )
}

/** A moment in a cell, accurate to a minute, in UTC. */
export function moment(at: Date | undefined): string {
  return at === undefined ? '-' : at.toISOString().slice(0, 16).concat('Z')
}

/** A text of an importer or a server, without characters that could steer the operator's terminal or reverse the line. */
export function printable(text: string): string {
  return text.replace(/\p{C}/gu, '\ufffd')
}
