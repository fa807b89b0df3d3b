/** Reads the parts of DER that certificates need, from bytes in a browser. It throws only `DerError`. */

export class DerError extends Error {
  override readonly name = 'DerError'
}

export interface DerElement {
  readonly tag: number
  readonly contents: Uint8Array
}

const TAG = {
  utf8String: 0x0c,
  teletexString: 0x14,
  utcTime: 0x17,
  generalizedTime: 0x18,
  bmpString: 0x1e,
} as const

/** PrintableString, NumericString, IA5String, VisibleString. */
const ASCII_TAGS: ReadonlySet<number> = new Set([0x13, 0x12, 0x16, 0x1a])

/** The elements in a row. */
export function readElements(bytes: Uint8Array): readonly DerElement[] {
  const found: DerElement[] = []
  for (let at = 0; at < bytes.length;) {
    const { element, end } = readElement(bytes, at)
    found.push(element)
    at = end
  }
  return found
}

function readElement(bytes: Uint8Array, at: number): { readonly element: DerElement; readonly end: number } {
  const [tag, first] = [bytes[at], bytes[at + 1]]
  if (tag === undefined || first === undefined) throw new DerError('The certificate is cut off')
  if ((tag & 0x1f) === 0x1f) throw new DerError('The certificate has a tag of several bytes')
  const count = first < 0x80 ? 0 : first & 0x7f
  if (count > 3 || first === 0x80) throw new DerError('The certificate has an invalid length')
  const start = at + 2 + count
  const length = count === 0 ? first : bytes.slice(at + 2, start).reduce((sum, byte) => sum * 256 + byte, 0)
  if (start + length > bytes.length) throw new DerError('The certificate is cut off')
  return { element: { tag, contents: bytes.subarray(start, start + length) }, end: start + length }
}

/** The elements inside. */
export function childrenOf(element: DerElement | undefined): readonly DerElement[] {
  if (element === undefined) throw new DerError('The certificate lacks a part')
  if ((element.tag & 0x20) === 0) throw new DerError('A part of the certificate has no parts')
  return readElements(element.contents)
}

/** `2.5.4.3` */
export function oidOf(element: DerElement | undefined): string {
  if (element?.tag !== 0x06) throw new DerError('The certificate lacks an object identifier')
  const arcs: number[] = []
  let arc = 0
  for (const byte of element.contents) {
    arc = arc * 128 + (byte & 0x7f)
    if ((byte & 0x80) !== 0) continue
    if (arcs.length === 0) arcs.push(Math.min(2, Math.floor(arc / 40)), arc - 40 * Math.min(2, Math.floor(arc / 40)))
    else arcs.push(arc)
    arc = 0
  }
  return arcs.join('.')
}

/** Letters that are no UTF-8 become replacement characters. */
export function textOf(element: DerElement | undefined): string {
  if (element === undefined) throw new DerError('The certificate lacks a text')
  const { tag, contents } = element
  if (tag === TAG.utf8String || ASCII_TAGS.has(tag)) return new TextDecoder().decode(contents)
  if (tag === TAG.bmpString) return new TextDecoder('utf-16be').decode(contents)
  if (tag === TAG.teletexString) return new TextDecoder('latin1').decode(contents)
  throw new DerError('The certificate has a text of an unknown type')
}

/** Milliseconds since the epoch. */
export function timeOf(element: DerElement | undefined): number {
  const text = element === undefined ? '' : new TextDecoder().decode(element.contents)
  const short = element?.tag === TAG.utcTime
  const century = !short ? '' : Number(text.slice(0, 2)) >= 50 ? '19' : '20'
  const [, year, month, day, hour, minute, second] =
    /^(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)Z$/.exec(century + text) ?? []
  const ms = Date.parse(`${year}-${month}-${day}T${hour}:${minute}:${second}Z`)
  if (Number.isNaN(ms)) throw new DerError('The certificate has an invalid time')
  return ms
}
