/** IP addresses and CIDR blocks as text in Go's canonical form: what net.ParseIP and net.ParseCIDR take and print. */
import { isIPv4, isIPv6 } from 'node:net'

/** The address in canonical form (`::ffff:1.2.3.4` is `1.2.3.4`, as in Go), or undefined when it is none. */
export function canonicalAddress(text: string): string | undefined {
  const bytes = addressBytes(text)
  return bytes && printAddress(bytes)
}

/** The block `text` lies in, host bits cleared: `10.1.2.3/8` is `10.0.0.0/8`. Undefined when it is none. */
export function canonicalBlock(text: string): string | undefined {
  const slash = text.indexOf('/')
  const bytes = addressBytes(text.slice(0, Math.max(0, slash)))
  const length = text.slice(slash + 1)
  if (bytes === undefined || !/^\d{1,7}$/.test(length) || Number(length) > bytes.length * 8) return undefined
  const masked = bytes.map((byte, at) => byte & maskByte(Number(length) - at * 8))
  return `${printAddress(masked)}/${Number(length)}`
}

function maskByte(bitsLeft: number): number {
  return (0xff00 >> Math.min(8, Math.max(0, bitsLeft))) & 0xff
}

/** Four or sixteen bytes. Zones (`fe80::1%eth0`) are no part of an address here. */
function addressBytes(text: string): number[] | undefined {
  if (isIPv4(text)) return text.split('.').map(Number)
  if (!isIPv6(text) || text.includes('%')) return undefined
  const [head = '', tail] = withoutDottedTail(text).split('::')
  const front = groups(head)
  const back = tail === undefined ? [] : groups(tail)
  const gap = Array.from({ length: 8 - front.length - back.length }, () => 0)
  return [...front, ...gap, ...back].flatMap((group) => [group >> 8, group & 0xff])
}

function withoutDottedTail(text: string): string {
  return text.replace(/[\d.]+$/, (tail) => {
    const [a = 0, b = 0, c = 0, d = 0] = tail.split('.').map(Number)
    return tail.includes('.') ? `${(a * 256 + b).toString(16)}:${(c * 256 + d).toString(16)}` : tail
  })
}

function groups(text: string): number[] {
  return text === '' ? [] : text.split(':').map((group) => Number.parseInt(group, 16))
}

function printAddress(bytes: readonly number[]): string {
  if (bytes.length === 4) return bytes.join('.')
  const words = Array.from({ length: 8 }, (_, at) => ((bytes[2 * at] ?? 0) << 8) | (bytes[2 * at + 1] ?? 0))
  if (words.slice(0, 5).every((word) => word === 0) && words[5] === 0xffff) return bytes.slice(12).join('.')
  const { start, length } = longestZeros(words)
  const hex = words.map((word) => word.toString(16))
  if (length < 2) return hex.join(':')
  return `${hex.slice(0, start).join(':')}::${hex.slice(start + length).join(':')}`
}

/** The first of the longest runs of zero words: the one RFC 5952 writes as `::`. */
function longestZeros(words: readonly number[]): { start: number; length: number } {
  let best = { start: 0, length: 0 }
  let run = { start: 0, length: 0 }
  for (const [at, word] of words.entries()) {
    run = word === 0 ? { start: run.length === 0 ? at : run.start, length: run.length + 1 } : { start: 0, length: 0 }
    if (run.length > best.length) best = run
  }
  return best
}
