/** Finds the client address of a request. X-Forwarded-For counts only if a trusted proxy sent it. */
import type { Exchange } from '#lib/http/exchange.ts'
import { contains, parseCidr, parseIp } from '#lib/net/cidr.ts'
import { ProgramError } from '#lib/program.ts'

/** `trusted` are addresses and CIDR ranges. Throws ProgramError for others. */
export function addressReader(trusted: readonly string[]): (exchange: Pick<Exchange, 'peer' | 'headers'>) => string {
  const ranges = trusted.map((text) => {
    const range = parseCidr(text.includes('/') ? text : `${text}/${text.includes(':') ? 128 : 32}`)
    if (range === undefined) throw new ProgramError(`--trusted-proxies: "${text}" is not an address or a CIDR range`)
    return range
  })
  const isTrusted = (text: string): boolean => {
    const ip = parseIp(text)
    return ip !== undefined && ranges.some((range) => contains(range, ip))
  }
  if (ranges.length === 0) return ({ peer }) => peer.address
  return ({ peer, headers }) => {
    const forwarded = [headers['x-forwarded-for'] ?? []].flat().join(',').split(',')
    const chain = [...forwarded.map((text) => text.trim()).filter((text) => text !== ''), peer.address]
    // From the nearest to the farthest: the first one that is no trusted proxy is the client.
    let address = chain.pop() ?? ''
    while (isTrusted(address) && chain.length > 0) address = chain.pop() ?? ''
    return address
  }
}
