/** Selects the interface to other nodes: by name, address or pattern, else the one with the default route. Pure. */
import { contains, formatIp, parseCidr, parseIp } from '#lib/net/cidr.ts'
import type { LinkState, RouteState } from '#lib/net/iproute.ts'

import type { ExternalInterface } from './link.ts'

export interface InterfaceOptions {
  /** Names or addresses; the first that exists. */
  readonly iface: readonly string[]
  readonly ifaceRegex: readonly RegExp[]
  /** The address for other nodes, if it is not on the interface. */
  readonly publicIp: string
  readonly publicIpv6: string
  readonly families: readonly (4 | 6)[]
}

export interface ChosenInterface {
  readonly external: ExternalInterface
  readonly publicIps: { readonly 4?: string; readonly 6?: string }
}

/** Throws an Error with the missing part. */
export function chooseInterface(
  options: InterfaceOptions,
  links: readonly LinkState[],
  routes: readonly RouteState[],
): ChosenInterface {
  const link = linkFor(options, links, routes)
  const given = { 4: options.publicIp, 6: options.publicIpv6 }
  const named = options.iface.flatMap((text) => parseIp(text) ?? [])
  const publicIps: { 4?: string; 6?: string } = {}
  for (const family of options.families) {
    const name = named.find((ip) => ip.family === family && has(link, formatIp(ip)))
    const found = given[family] || (name && formatIp(name)) || addressOf(link, family)
    if (found === undefined) {
      throw new Error(`failed to find IPv${family} address for interface ${link.ifname}`)
    }
    publicIps[family] = found
  }
  return { external: { name: link.ifname, mtu: link.mtu, networks: networksOf(link) }, publicIps }
}

function linkFor(
  { iface, ifaceRegex, families }: InterfaceOptions,
  links: readonly LinkState[],
  routes: readonly RouteState[],
): LinkState {
  for (const name of iface) {
    const ip = parseIp(name)
    const found = links.find((link) => link.ifname === name || (ip !== undefined && has(link, formatIp(ip))))
    if (found !== undefined) return found
  }
  for (const pattern of ifaceRegex) {
    const found = links.find(
      ({ ifname, addr_info: all }) => pattern.test(ifname) || all.some(({ local }) => pattern.test(local)),
    )
    if (found !== undefined) return found
  }
  if (iface.length + ifaceRegex.length > 0) {
    throw new Error(`Could not find valid interface matching ${[...iface, ...ifaceRegex.map(String)].join(', ')}`)
  }
  const outward = routes.find(({ dst }) => dst === 'default')?.dev
  const found = links.find(({ ifname }) => ifname === outward)
  if (found === undefined)
    throw new Error(`failed to get default interface: no default route for IPv${families[0] ?? 4}`)
  return found
}

const has = ({ addr_info: all }: LinkState, address: string): boolean => all.some(({ local }) => local === address)

function addressOf({ addr_info: all }: LinkState, family: 4 | 6): string | undefined {
  const own = all.filter((one) => one.family === (family === 4 ? 'inet' : 'inet6'))
  return (own.find(({ scope }) => scope === 'global') ?? own[0])?.local
}

/** The networks of the link, whose nodes need no gateway. */
function networksOf({ addr_info: all }: LinkState): string[] {
  return all.flatMap(({ local, prefixlen, scope }) => {
    const text = `${local}/${prefixlen}`
    const ip = parseIp(local)
    const block = parseCidr(text)
    return scope === 'global' && ip !== undefined && block !== undefined && contains(block, ip) ? [text] : []
  })
}
