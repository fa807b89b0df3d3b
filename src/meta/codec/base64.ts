/** Decodes base64 with the leniency and the error texts of Go's decoder, which accepts line breaks anywhere. */
import { Buffer } from 'node:buffer'

/** The canonical text. Throws an Error with Go's message. */
export function normalizeBase64(text: string): string {
  if (isCanonical(text)) return text
  const fault = findFault(text)
  if (fault !== undefined) throw new Error(`illegal base64 data at input byte ${fault}`)
  return Buffer.from(text, 'base64').toString('base64')
}

const shape = /^[A-Za-z0-9+/]*={0,2}$/

function isCanonical(text: string): boolean {
  if (text.length % 4 !== 0 || !shape.test(text)) return false
  if (text.endsWith('==')) return 'AQgw'.includes(text.charAt(text.length - 3))
  return !text.endsWith('=') || 'AEIMQUYcgkosw048'.includes(text.charAt(text.length - 2))
}

/** The byte offset at which Go's decoder fails; undefined if it does not. */
function findFault(text: string): number | undefined {
  const bytes = Buffer.from(text)
  /** The number of characters read of the group of four. */
  let filled = 0
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at] as number
    if (isLineBreak(byte)) continue
    if (isDigit(byte)) filled = (filled + 1) % 4
    else return byte === 0x3d ? faultInPadding(bytes, at, filled) : at
  }
  return filled === 0 ? undefined : bytes.length - filled
}

function faultInPadding(bytes: Buffer, first: number, filled: number): number | undefined {
  if (filled < 2) return first
  let at = skipLineBreaks(bytes, first + 1)
  if (filled === 2) {
    if (at === bytes.length) return at
    if (bytes[at] !== 0x3d) return at - 1
    at = skipLineBreaks(bytes, at + 1)
  }
  return at < bytes.length ? at : undefined
}

function skipLineBreaks(bytes: Buffer, from: number): number {
  let at = from
  while (at < bytes.length && isLineBreak(bytes[at] as number)) at++
  return at
}

function isLineBreak(byte: number): boolean {
  return byte === 0x0a || byte === 0x0d
}

function isDigit(byte: number): boolean {
  const letter = byte | 0x20
  return (letter >= 0x61 && letter <= 0x7a) || (byte >= 0x2f && byte <= 0x39) || byte === 0x2b
}
