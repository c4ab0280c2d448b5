import { crc32, deflateRawSync } from 'node:zlib'

const LOCAL_HEADER = 0x04034b50
const CENTRAL_HEADER = 0x02014b50
const END = 0x06054b50
const VERSION = 20
const UTF8_NAMES = 0x800
const METHODS = { stored: 0, deflated: 8 }

/** A zip archive of these files, by their paths. */
export function makeZip(
  files: Readonly<Record<string, string | Buffer>>,
  how: keyof typeof METHODS = 'deflated',
): Buffer {
  const locals: Buffer[] = []
  const central: Buffer[] = []
  let offset = 0
  for (const [path, text] of Object.entries(files)) {
    const name = Buffer.from(path)
    const bytes = typeof text === 'string' ? Buffer.from(text) : text
    const content = how === 'deflated' ? deflateRawSync(bytes) : bytes
    const fields = u16(VERSION, UTF8_NAMES, METHODS[how], 0, 0)
    const sizes = u32(crc32(bytes), content.length, bytes.length)
    const local = Buffer.concat([
      u32(LOCAL_HEADER),
      fields,
      sizes,
      u16(name.length, 0),
      name,
      content,
    ])
    const attributes = Buffer.concat([u16(0, 0, 0), u32(0, offset)])
    central.push(
      Buffer.concat([
        u32(CENTRAL_HEADER),
        u16(VERSION),
        fields,
        sizes,
        u16(name.length, 0),
        attributes,
        name,
      ]),
    )
    locals.push(local)
    offset += local.length
  }
  const list = Buffer.concat(central)
  const end = Buffer.concat([
    u32(END),
    u16(0, 0, central.length, central.length),
    u32(list.length, offset),
    u16(0),
  ])
  return Buffer.concat([...locals, list, end])
}

function u16(...values: number[]): Buffer {
  return Buffer.concat(values.map((value) => Buffer.from([value & 0xff, value >> 8])))
}

function u32(...values: number[]): Buffer {
  const bytes = Buffer.alloc(values.length * 4)
  for (const [at, value] of values.entries()) bytes.writeUInt32LE(value, at * 4)
  return bytes
}
