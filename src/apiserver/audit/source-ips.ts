/**
 * Finds the source addresses of a request: those in proxy headers and that of the connection, which clients cannot
 * forge.
 */

import type { Exchange } from '#lib/http/exchange.ts'
import { formatIp, type Ip, parseIp } from '#lib/net/cidr.ts'

/** Addresses of `X-Forwarded-For`, then `X-Real-Ip`, then the connection; none twice in a row. */
export function sourceIps({ headers, peer }: Pick<Exchange, 'headers' | 'peer'>): string[] {
  const forwarded = textOf(headers['x-forwarded-for'])
  const real = textOf(headers['x-real-ip'])
  if (forwarded === '' && real === '') return directly(peer.address)
  const found = forwarded === '' ? [] : forwarded.split(',').flatMap((part) => addressOf(part.trim()))
  const [own] = addressOf(real)
  if (own !== undefined && !found.includes(own)) found.push(own)
  const [remote] = directly(peer.address)
  if (remote !== undefined && found.at(-1) !== remote) found.push(remote)
  return found
}

/** The result for the last connection, cached because clients send many requests over one. */
let last: { readonly address: string; readonly ips: string[] } = { address: '', ips: [] }

function directly(address: string): string[] {
  if (address !== last.address) last = { address, ips: addressOf(address) }
  return last.ips
}

function addressOf(text: string): string[] {
  const ip: Ip | undefined = text === '' ? undefined : parseIp(text, { sloppy: true })
  return ip === undefined ? [] : [formatIp(ip)]
}

function textOf(value: string | readonly string[] | undefined): string {
  return typeof value === 'string' ? value : (value?.join(',') ?? '')
}
