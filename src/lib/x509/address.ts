/** IP addresses in certificates: 4 or 16 bytes. An IPv4-mapped IPv6 address counts as IPv4. */
import { formatIp as printIp, parseIp } from '../net/cidr.ts'
import { X509Error } from './error.ts'

export function encodeIp(text: string): Buffer {
  const ip = parseIp(text, { mapped: true })
  if (ip === undefined) throw new X509Error('refused', `Not an IP address: ${JSON.stringify(text)}`)
  return Buffer.from(ip.value.toString(16).padStart(ip.family === 4 ? 8 : 32, '0'), 'hex')
}

/** The usual text form; IPv6 as RFC 5952 has it, with the longest run of zeros left out. */
export function formatIp(bytes: Buffer): string {
  const family = bytes.length === 4 ? 4 : 6
  if (family === 6 && bytes.length !== 16) {
    throw new X509Error('malformed', `An IP address has 4 or 16 bytes, not ${bytes.length}`)
  }
  const text = printIp({ family, value: BigInt(`0x${bytes.toString('hex')}`) })
  return text.startsWith('::ffff:') && text.includes('.') ? text.slice('::ffff:'.length) : text
}
