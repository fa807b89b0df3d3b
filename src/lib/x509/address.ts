/** IP addresses as certificates hold them: 4 or 16 bytes. An IPv4 address in IPv6 clothing counts as IPv4. */
import { isIPv4, isIPv6 } from 'node:net'

import { X509Error } from './error.ts'

export function encodeIp(text: string): Buffer {
  if (isIPv4(text)) return encodeIpv4(text)
  if (!isIPv6(text) || text.includes('%')) throw new X509Error('refused', `Not an IP address: ${JSON.stringify(text)}`)
  const bytes = encodeIpv6(text)
  return isMapped(bytes) ? bytes.subarray(12) : bytes
}

function encodeIpv4(text: string): Buffer {
  return Buffer.from(text.split('.').map(Number))
}

function encodeIpv6(text: string): Buffer {
  const plain = text.replace(/\d+\.\d+\.\d+\.\d+$/, (dotted) => {
    const last = encodeIpv4(dotted)
    return `${hex16(last, 0)}:${hex16(last, 2)}`
  })
  const [head, tail] = plain.split('::').map((half) => half.split(':').filter((group) => group !== ''))
  const bytes = Buffer.alloc(16)
  for (const [index, group] of (head ?? []).entries()) bytes.writeUInt16BE(Number.parseInt(group, 16), 2 * index)
  const start = 16 - 2 * (tail?.length ?? 0)
  for (const [index, group] of (tail ?? []).entries())
    bytes.writeUInt16BE(Number.parseInt(group, 16), start + 2 * index)
  return bytes
}

/** The usual text form; IPv6 as RFC 5952 has it, with the longest run of zeros left out. */
export function formatIp(bytes: Buffer): string {
  if (bytes.length === 4) return bytes.join('.')
  if (bytes.length !== 16) throw new X509Error('malformed', `An IP address has 4 or 16 bytes, not ${bytes.length}`)
  if (isMapped(bytes)) return bytes.subarray(12).join('.')
  const groups = Array.from({ length: 8 }, (_, index) => hex16(bytes, 2 * index))
  const shape = groups.map((group) => (group === '0' ? '0' : 'x')).join('')
  const longest = [...shape.matchAll(/00+/g)].toSorted((a, b) => b[0].length - a[0].length)[0]
  if (longest === undefined) return groups.join(':')
  return `${groups.slice(0, longest.index).join(':')}::${groups.slice(longest.index + longest[0].length).join(':')}`
}

function isMapped(bytes: Buffer): boolean {
  return bytes.subarray(0, 10).every((byte) => byte === 0) && bytes.readUInt16BE(10) === 0xffff
}

function hex16(bytes: Buffer, at: number): string {
  return bytes.readUInt16BE(at).toString(16)
}
