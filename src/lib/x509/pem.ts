/**
 * Reads and writes PEM: base64 blocks with a label, as in `-----BEGIN CERTIFICATE-----`. Text outside the blocks is
 * ignored.
 */
import { X509Error } from './error.ts'

export interface PemBlock {
  /** The label after BEGIN, such as `CERTIFICATE` or `EC PRIVATE KEY`. */
  readonly label: string
  readonly bytes: Buffer
  /** The block as it stood in the text. */
  readonly text: string
}

/** A bundle of every public root is a quarter of a mebibyte. */
const MAX_CHARACTERS = 4 << 20

const BEGIN = '-----BEGIN '
const DASHES = '-----'

/** All blocks in order; none when there is none. Throws `X509Error` for a block that is cut off or not base64. */
export function parsePem(text: string): PemBlock[] {
  if (text.length > MAX_CHARACTERS) throw new X509Error('malformed', `PEM of ${text.length} characters is too long`)
  const blocks: PemBlock[] = []
  // Plain searches, so that the cost is linear in the length of the text.
  for (let start = text.indexOf(BEGIN); start >= 0;) {
    const labelEnd = text.indexOf(DASHES, start + BEGIN.length)
    const label = text.slice(start + BEGIN.length, Math.max(labelEnd, 0))
    if (labelEnd < 0 || !/^[A-Z0-9 ]{1,64}$/.test(label))
      throw new X509Error('malformed', 'PEM block has no proper label')
    const closing = `-----END ${label}-----`
    const bodyEnd = text.indexOf(closing, labelEnd)
    if (bodyEnd < 0) throw new X509Error('malformed', `PEM block "${label}" has no end`)
    const end = bodyEnd + closing.length
    const bytes = decodeBody(text.slice(labelEnd + DASHES.length, bodyEnd), label)
    blocks.push({ label, bytes, text: `${text.slice(start, end)}\n` })
    start = text.indexOf(BEGIN, end)
  }
  return blocks
}

function decodeBody(body: string, label: string): Buffer {
  // Only old encrypted keys carry headers; everything else in a block is base64.
  if (body.includes(':')) throw new X509Error('unsupported', `PEM block "${label}" is encrypted; decrypt it first`)
  const compact = body.replaceAll(/\s+/g, '')
  if (!/^[A-Za-z0-9+/]*={0,2}$/.test(compact) || compact.length % 4 !== 0) {
    throw new X509Error('malformed', `PEM block "${label}" is not base64`)
  }
  return Buffer.from(compact, 'base64')
}

/** One block with lines of 64 characters and a final line end. */
export function encodePem(label: string, bytes: Buffer): string {
  const lines = bytes.toString('base64').match(/.{1,64}/g) ?? []
  return `-----BEGIN ${label}-----\n${lines.join('\n')}${lines.length > 0 ? '\n' : ''}-----END ${label}-----\n`
}
