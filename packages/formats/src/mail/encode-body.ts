// Prepares a mail for postal-mime, which is slow with bodies of many lines.

const MULTIPART = /^content-type:\s*(multipart|message)\//im
const ENCODED = /^content-transfer-encoding:\s*(?!7bit|8bit|binary)\S/im

/**
 * Returns the mail with its body as one line of base64, if the body has one part and is not encoded. postal-mime makes a Blob of all lines of
 * such a body, and Node takes some 10 µs for each: most of the time that reading a mailing list takes.
 */
export function encodeBody(mail: Buffer): Buffer {
  const end = endOfHeader(mail)
  const header = mail.toString('latin1', 0, end)
  if (end === -1 || MULTIPART.test(header) || ENCODED.test(header)) return mail
  // The first of two headers counts.
  return Buffer.from(`Content-Transfer-Encoding: base64\n${header}\n\n${mail.toString('base64', end)}`, 'latin1')
}

/** Returns where the blank line behind the header begins, or -1. */
function endOfHeader(mail: Buffer): number {
  const ends = [mail.indexOf('\n\n'), mail.indexOf('\n\r\n')].filter((end) => end !== -1)
  return ends.length > 0 ? Math.min(...ends) + 1 : -1
}
