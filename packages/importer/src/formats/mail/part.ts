// Reads what a header says about its part of a mail.

/** A part of a mail, or the mail itself. */
export interface Part {
  type: string
  /** The encoding of the body, if it has one. */
  transfer: string | undefined
  charset: string | undefined
  boundary: string | undefined
  /** Whether a space at the end of a line marks a soft line break (`format=flowed`). */
  isFlowed: boolean
  /** Whether this space does not belong to the text. */
  deletesSpaces: boolean
  /** Whether the part is a file, rather than a text. */
  isFile: boolean
}

const TYPE = /^content-type[ \t]*:[ \t"]*([^\s;"]+)(.*)/im
const TRANSFER = /^content-transfer-encoding[ \t]*:[ \t"]*(base64|quoted-printable)/im
const ATTACHED = /^content-disposition[ \t]*:[ \t"]*attachment/im

const [CHARSET, BOUNDARY, FORMAT, DELSP] = ['charset', 'boundary', 'format', 'delsp'].map(
  (name) =>
    new RegExp(`[;\\s]${name}(?:\\*0)?\\s*=\\s*(?:"((?:[^"\\\\]|\\\\.)*)"?|([^\\s;]+))`, 'i'),
)

/** Between pieces of a long parameter: `boundary*0="a"; boundary*1="b"` (RFC 2231). */
const CONTINUED = /(?:"|(?<!["\s]))\s*;\s*[\w-]+\*[1-9]\d?\s*=\s*"?/g

/** Reads the header of a part. If a header occurs twice, the first one counts. */
export function readPart(header: string, defaultType: string): Part {
  const unfolded = header.replace(/(?<!\r)\r*\n[ \t]+/g, ' ')
  const [, type = '', ofType = ''] = TYPE.exec(unfolded) ?? []
  const params = ofType.includes('*1') ? ofType.replaceAll(CONTINUED, '') : ofType
  return {
    type: type.toLowerCase() || defaultType,
    transfer: TRANSFER.exec(unfolded)?.[1]?.toLowerCase(),
    charset: paramIn(params, CHARSET),
    boundary: paramIn(params, BOUNDARY),
    isFlowed: paramIn(params, FORMAT)?.toLowerCase() === 'flowed',
    deletesSpaces: paramIn(params, DELSP)?.toLowerCase() === 'yes',
    isFile: ATTACHED.test(unfolded),
  }
}

function paramIn(params: string, name: RegExp | undefined): string | undefined {
  const [, quoted, plain] = name?.exec(params) ?? []
  return quoted?.replaceAll(/\\(.)/g, '$1') ?? plain
}
