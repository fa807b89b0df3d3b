/** Creates a network bridge with its addresses, and repairs it. */
import { parseIp } from '#lib/net/cidr.ts'
import type { Commands, IpRoute, LinkState } from '#lib/net/iproute.ts'

export interface BridgeSpec {
  readonly name: string
  /** With prefix length: `10.244.0.1/24`. The first one determines the MAC. */
  readonly addresses: readonly string[]
  readonly mtu?: number
}

/** Returns whether anything changed. Throws if the name belongs to another kind of link. */
export async function ensureBridge(ip: IpRoute, spec: BridgeSpec): Promise<boolean> {
  const commands = planBridge(spec, await ip.link(spec.name))
  await ip.ip(commands)
  return commands.length > 0
}

export function planBridge({ name, addresses, mtu }: BridgeSpec, found: LinkState | undefined): Commands {
  if (found !== undefined && found.linkinfo?.info_kind !== 'bridge') throw new Error(`Link "${name}" is not a bridge`)
  const mac = macFor(addresses[0] ?? '')
  const made = ['link', 'add', 'name', name, ...(mac === undefined ? [] : ['address', mac]), 'type', 'bridge']
  const isUp = found?.flags.includes('UP') === true
  return [
    ...(found === undefined ? [made] : []),
    ...(mtu === undefined || found?.mtu === mtu ? [] : [['link', 'set', 'dev', name, 'mtu', String(mtu)]]),
    ...planAddresses(name, addresses, found),
    ...(isUp ? [] : [['link', 'set', 'dev', name, 'up']]),
  ]
}

/** Keeps addresses of the machine, such as link-local ones. */
export function planAddresses(name: string, wanted: readonly string[], found: LinkState | undefined): Commands {
  const has = (found?.addr_info ?? [])
    .filter(({ scope }) => scope === 'global')
    .map(({ local, prefixlen }) => `${local}/${prefixlen}`)
  // Adds before it removes: a link without addresses loses its routes.
  return [
    ...wanted
      .filter((address) => !has.includes(address))
      .map((address) => ['address', 'add', address, 'dev', name, ...(address.includes(':') ? ['nodad'] : [])]),
    ...has.filter((address) => !wanted.includes(address)).map((address) => ['address', 'delete', address, 'dev', name]),
  ]
}

/**
 * A bridge without a fixed MAC takes the lowest of its ports and changes it with every pod, which breaks neighbour
 * caches. CNI's bridge plugin derived it in the same way.
 */
export function macFor(address: string): string | undefined {
  const ip = parseIp(address.split('/')[0] ?? '')
  if (ip?.family !== 4) return undefined
  const bytes = [24n, 16n, 8n, 0n].map((shift) => Number((ip.value >> shift) & 255n))
  return ['0a', '58', ...bytes.map((byte) => byte.toString(16).padStart(2, '0'))].join(':')
}
