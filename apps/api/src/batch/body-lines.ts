/** One line of a body, or the mark of one that is longer than a line may be and was passed over. */
export type BodyLine = Buffer | 'too long'

/** The lines that came with one piece of the body: what comes next may take its time. */
export type Lines = BodyLine[]

const NEWLINE = 0x0a

/**
 * Reads lines as their bytes come, holding never more than a piece and one line. Lines of nothing but white space, of any length, are passed over.
 *
 * @param lineBytes how long a line may be, in bytes.
 * @throws what reading the chunks throws; the lines before were given.
 */
export async function* bodyLines(chunks: AsyncIterable<Buffer>, lineBytes: number): AsyncGenerator<Lines> {
  const line = createLine(lineBytes)
  for await (const chunk of chunks) {
    const lines: Lines = []
    let start = 0
    for (let end = chunk.indexOf(NEWLINE); end !== -1; end = chunk.indexOf(NEWLINE, start)) {
      line.add(chunk.subarray(start, end))
      lines.push(...line.take())
      start = end + 1
    }
    if (start < chunk.length) line.add(chunk.subarray(start))
    yield lines
  }
  yield line.take()
}

/** Puts a line together from its pieces. */
function createLine(maxBytes: number) {
  let pieces: Buffer[] = []
  let bytes = 0
  let blank = true
  return {
    add(piece: Buffer): void {
      bytes += piece.length
      blank &&= isBlank(piece)
      if (bytes > maxBytes) pieces = []
      else pieces.push(piece)
    },
    /** The line, unless it is blank. */
    take(): Lines {
      const taken: Lines = blank ? [] : [bytes > maxBytes ? 'too long' : Buffer.concat(pieces)]
      pieces = []
      bytes = 0
      blank = true
      return taken
    },
  }
}

const SPACE = 0x20
const TAB = 0x09
const CARRIAGE_RETURN = 0x0d

/** White space of ASCII: tab, the vertical ones, and the space. */
function isBlank(piece: Buffer): boolean {
  return piece.every((byte) => byte === SPACE || (byte >= TAB && byte <= CARRIAGE_RETURN))
}
