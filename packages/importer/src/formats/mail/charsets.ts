// Decodes texts of mails in all charsets that mails name, including some that browsers do not know.
import { isUtf8 } from 'node:buffer'

export interface Utf8Text {
  bytes: Buffer
  /** Whether the charset is known, or the text is ASCII, which is part of all charsets. */
  isKnown: boolean
}

/**
 * Converts a text to UTF-8. Without a charset, it is taken for UTF-8, except for lines that are not
 * valid UTF-8, which are taken for windows-1252. If a single-byte charset is declared, or a charset
 * in which characters are lost, but the text is valid UTF-8, it is read as UTF-8: many programs
 * make this mistake, and UTF-8 is never a meaningful text in such a charset.
 */
export function toUtf8(bytes: Buffer, charset = ''): Utf8Text {
  const name = charset.trim().toLowerCase()
  if (UNICODE.test(name)) return { bytes: convertLines(bytes), isKnown: true }
  if (SINGLE_BYTE.test(name) && isUtf8(bytes)) return { bytes, isKnown: true }
  if (UTF16.test(name)) return { bytes: decodeUtf16(bytes, name), isKnown: true }
  const decode = SPECIAL.find(([names]) => names.test(name))?.[1]
  if (decode) return { bytes: Buffer.from(decode(bytes.toString('latin1'))), isKnown: true }
  const decoder =
    decoderOf(name) ??
    decoderOf(ALIASES.find(([names]) => names.test(name))?.[1] ?? codePageIn(name))
  const text = decoder?.decode(bytes)
  const isLost = text?.includes('\uFFFD') && isUtf8(bytes)
  if (text !== undefined) return { bytes: isLost ? bytes : Buffer.from(text), isKnown: true }
  return { bytes: convertLines(bytes), isKnown: !bytes.some((byte) => byte > LAST_ASCII) }
}

const LAST_ASCII = 0x7f

const UTF16 = /^(csunicode|unicode$|iso-10646-ucs-2|ucs-?2|utf-?16)/

/**
 * Decodes text whose charset is `unicode` or the like. Programs also use this name for other
 * encodings. Only UTF-16 has bytes that are 0, at least in its line ends.
 */
function decodeUtf16(bytes: Buffer, name: string): Buffer {
  if (!bytes.includes(0)) return convertLines(bytes)
  const [first, second] = bytes
  const isBig =
    (first === 0xfe && second === 0xff) || (first !== 0xff && (/be$/.test(name) || first === 0))
  return Buffer.from((isBig ? utf16 : utf16le).decode(bytes))
}

const utf16le = new TextDecoder('utf-16le')

/**
 * Matches the names of UTF-8 and ASCII, and an absent name. Programs use each of them for any 8-bit
 * text.
 */
const UNICODE = /^$|^(3d)?utf-?8|^(us-)?ascii|^ansi_x3\.|^iso-?646|^(x-)?unknown|^default/

const SINGLE_BYTE = /8859|125\d$|^latin/

/** Converts each line separately, because mailing lists append a footer in another encoding. */
function convertLines(bytes: Buffer): Buffer {
  if (isUtf8(bytes)) return bytes
  const converted: Buffer[] = []
  let run = { start: 0, isUtf8: true }
  const pieces: Buffer[] = []
  for (let start = 0; start < bytes.length; ) {
    const newline = bytes.indexOf('\n', start)
    const end = newline === -1 ? bytes.length : newline + 1
    const isLineUtf8 = isUtf8(bytes.subarray(start, end))
    if (isLineUtf8 !== run.isUtf8) {
      pieces.push(convertRun(bytes.subarray(run.start, start), run.isUtf8))
      run = { start, isUtf8: isLineUtf8 }
    }
    if (pieces.length === PIECES_AT_ONCE) converted.push(Buffer.concat(pieces.splice(0)))
    start = end
  }
  return Buffer.concat([...converted, ...pieces, convertRun(bytes.subarray(run.start), run.isUtf8)])
}

function convertRun(bytes: Buffer, isUtf8: boolean): Buffer {
  return isUtf8 ? bytes : Buffer.from(windows1252.decode(bytes))
}

/** Joins decoded pieces after this number: short ones need much more memory than their text. */
const PIECES_AT_ONCE = 1000

const windows1252 = new TextDecoder('windows-1252')
const decoders = new Map<string, Pick<typeof windows1252, 'decode'>>()

function decoderOf(name: string) {
  const known = decoders.get(name)
  if (known) return known
  try {
    const decoder = new TextDecoder(name)
    decoders.set(name, decoder)
    return decoder
  } catch {
    return undefined
  }
}

/** Other names of charsets that TextDecoder knows. */
const ALIASES: readonly [RegExp, string][] = [
  [/s(hift)?[-_]?jis|932$|^windows-31j/, 'shift_jis'],
  [/euc[-_]?jp|51932$/, 'euc-jp'],
  [/euc[-_]?kr|949$|uhc/, 'euc-kr'],
  [/gb|936$|euc[-_]?cn/, 'gb18030'],
  [/big5|950$/, 'big5'],
  [/tis[-_]?620|874$/, 'windows-874'],
  [/866$/, 'ibm866'],
  [/10000$|^mac/, 'macintosh'],
  [/65001$/, 'utf-8'],
]

/** Returns the usual name of a charset such as `win1251`, `cp-1252`, `iso_8859_15` or `latin-1`. */
function codePageIn(name: string): string {
  const [, windows] = /^(?:x-)?(?:cp|win|windows|ms|ibm)[-_]?(125\d)$/.exec(name) ?? []
  const [, iso] = /8859[-_]?(\d{1,2})/.exec(name) ?? []
  const [, latin] = /^latin[-_ ]?(\d)$/.exec(name) ?? []
  return (windows && `windows-${windows}`) ?? (iso && `iso-8859-${iso}`) ?? `latin${latin}`
}

/** The upper halves of two charsets of DOS. */
const CP437 =
  'ÇüéâäàåçêëèïîìÄÅÉæÆôöòûùÿÖÜ¢£¥₧ƒáíóúñÑªº¿⌐¬½¼¡«»░▒▓│┤╡╢╖╕╣║╗╝╜╛┐└┴┬├─┼╞╟╚╔╩╦╠═╬╧╨╤╥╙╘╒╓╫╪┘┌█▄▌▐▀αßΓπΣσµτΦΘΩδ∞φε∩≡±≥≤⌠⌡÷≈°∙·√ⁿ²■\u00A0'
const CP850 =
  'ÇüéâäàåçêëèïîìÄÅÉæÆôöòûùÿÖÜø£Ø×ƒáíóúñÑªº¿®¬½¼¡«»░▒▓│┤ÁÂÀ©╣║╗╝¢¥┐└┴┬├─┼ãÃ╚╔╩╦╠═╬¤ðÐÊËÈıÍÎÏ┘┌█▄¦Ì▀ÓßÔÒõÕµþÞÚÛÙýÝ¯´\u00AD±‗¾¶§÷¸°¨·¹³²■\u00A0'

function decodeByTable(text: string, upper: string): string {
  return text.replace(/[\x80-\xFF]/g, (one) => upper.charAt(one.charCodeAt(0) - 0x80))
}

/** Decodes a charset with two bytes for each character, whose highest bits are set. */
function decodeEuc(text: string, charset: 'euc-kr' | 'gbk'): string {
  return new TextDecoder(charset).decode(Buffer.from(text, 'latin1'))
}

function setHighestBits(text: string): string {
  return text.replace(/[!-~]/g, (one) => String.fromCharCode(one.charCodeAt(0) | 0x80))
}

const [SHIFT_OUT, SHIFT_IN] = ['\x0E', '\x0F']
/** The sequences that name the character set of shifted characters. */
const DESIGNATIONS = ['\x1B$)C', '\x1B$)A']

/**
 * Sets the highest bits of shifted characters. In ISO 2022, a control character shifts to
 * characters of two bytes, until another one or the end of the line.
 */
function unshift(text: string): string {
  const bare = DESIGNATIONS.reduce((rest, designation) => rest.replaceAll(designation, ''), text)
  return bare.split('\n').map(unshiftLine).join('\n')
}

function unshiftLine(line: string): string {
  const [beginning = '', ...shifted] = line.split(SHIFT_OUT)
  const texts = shifted.map((text) => {
    const [pairs = '', ...rest] = text.split(SHIFT_IN)
    return `${setHighestBits(pairs)}${rest.join('')}`
  })
  return beginning + texts.join('')
}

/** Removes shifts that no character follows: two encoded words were joined there. */
function decodeJis(text: string): string {
  const bare = IDLE_SHIFTS.reduce((rest, shift) => rest.replaceAll(`${shift}\x1B`, '\x1B'), text)
  return new TextDecoder('iso-2022-jp').decode(Buffer.from(bare, 'latin1'))
}

const IDLE_SHIFTS = ['\x1B(B', '\x1B(J', '\x1B$B', '\x1B$@']

/**
 * Sets the highest bits of shifted characters. In HZ, `~{` shifts to characters of two bytes, until
 * `~}` or the end of the line. `~~` is a tilde.
 */
function unshiftHz(text: string): string {
  const replace = (_: string, shifted?: string, tilde = '') =>
    shifted === undefined ? tilde : setHighestBits(shifted)
  return text.replace(/~(?:\{([^\n]*?)(?:~\}|(?=\n|$))|(~)|\r?\n)/g, replace)
}

/**
 * Decodes UTF-7: `+AOk-` is é as UTF-16 in base64, and `+-` is a plus sign. A shorter code is an
 * unescaped text.
 */
function decodeUtf7(text: string): string {
  return text.replace(/\+([A-Za-z\d+/]*)-?/g, (whole, code: string) => {
    const bytes = Buffer.from(code, 'base64')
    if (bytes.length < 2) return whole === '+-' ? '+' : whole
    return utf16.decode(bytes.subarray(0, bytes.length - (bytes.length % 2)))
  })
}

const utf16 = new TextDecoder('utf-16be')

/** Charsets that TextDecoder lacks, because browsers must not support them. */
const SPECIAL: readonly [RegExp, (text: string) => string][] = [
  [/utf-?7/, decodeUtf7],
  [/2022-?jp|^junet|5022[0-2]$/, decodeJis],
  [/2022-?kr/, (text) => decodeEuc(unshift(text), 'euc-kr')],
  [/2022-?cn/, (text) => decodeEuc(unshift(text), 'gbk')],
  [/hz-?gb/, (text) => decodeEuc(unshiftHz(text), 'gbk')],
  [/437$/, (text) => decodeByTable(text, CP437)],
  [/85[08]$/, (text) => decodeByTable(text, CP850)],
]
