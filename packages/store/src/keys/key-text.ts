import { hash, randomBytes } from 'node:crypto'
import { crc32 } from 'node:zlib'

const PREFIX = 'slc_'
const DIGITS = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

// 30 digits of base 62 are 178 bits; six hold any CRC-32 (62 ** 6 > 2 ** 32).
const RANDOM_LENGTH = 30
const CHECKSUM_LENGTH = 6
const KEY_LENGTH = PREFIX.length + RANDOM_LENGTH + CHECKSUM_LENGTH
const SHAPE = new RegExp(`^${PREFIX}[0-9A-Za-z]{${RANDOM_LENGTH + CHECKSUM_LENGTH}}$`)

// The greatest multiple of 62 that a byte can tell apart: bytes from there on would favour the first digits.
const UNBIASED = 248

/** A new key: `slc_`, 178 random bits, and a checksum by which a typo is told without a look-up. */
export function newKeyText(): string {
  const start = PREFIX + randomDigits(RANDOM_LENGTH)
  return start + checksum(start)
}

/** Whether a text can be a key at all; any typo of one, two or three characters is told, and most others. */
export function isWellFormedKey(text: string): boolean {
  if (text.length !== KEY_LENGTH || !SHAPE.test(text)) return false
  return checksum(text.slice(0, -CHECKSUM_LENGTH)) === text.slice(-CHECKSUM_LENGTH)
}

/** What is kept of a key: its SHA-256 in hexadecimal. Unsalted is enough for 178 random bits, and can be looked up. */
export function keyHash(key: string): string {
  return hash('sha256', key)
}

function randomDigits(count: number): string {
  let digits = ''
  while (digits.length < count) {
    for (const byte of randomBytes(count)) {
      if (byte < UNBIASED && digits.length < count) digits += DIGITS[byte % DIGITS.length]
    }
  }
  return digits
}

function checksum(text: string): string {
  let rest = crc32(text)
  let digits = ''
  for (let place = 0; place < CHECKSUM_LENGTH; place++) {
    digits = DIGITS[rest % DIGITS.length] + digits
    rest = Math.floor(rest / DIGITS.length)
  }
  return digits
}
