/** Encodes and decodes the parts of ASN.1's basic encoding rules (BER) that LDAP needs. */

export interface BerElement {
  readonly tag: number
  readonly content: Buffer
}

export function element(tag: number, ...contents: readonly Buffer[]): Buffer {
  const content = Buffer.concat(contents)
  const { length } = content
  const size = length < 0x80 ? Buffer.of(length) : Buffer.of(0x84, length >> 24, length >> 16, length >> 8, length)
  return Buffer.concat([Buffer.of(tag), size, content])
}

export function listOf(elements: readonly Buffer[]): Buffer {
  return element(0x30, ...elements)
}

/** Of at most 15 bits. */
export function integer(value: number): Buffer {
  return element(0x02, value < 0x80 ? Buffer.of(value) : Buffer.of(value >> 8, value))
}

export function text(value: string): Buffer {
  return element(0x04, Buffer.from(value))
}

/** Elements one after the other. */
export function readElements(bytes: Buffer): readonly BerElement[] {
  const found: BerElement[] = []
  for (let at = 0; at + 1 < bytes.length;) {
    const [tag = 0, first = 0] = [bytes[at], bytes[at + 1]]
    const more = first < 0x80 ? 0 : first & 0x7f
    const length = more === 0 ? first : bytes.readUIntBE(at + 2, more)
    const start = at + 2 + more
    found.push({ tag, content: bytes.subarray(start, start + length) })
    at = start + length
  }
  return found
}
