/** A bridge of our own, with the addresses it is to have: made before the first who needs it, mended when it is not as it should be. */
import { parseIp } from '#lib/cidr.ts'
import type { Commands, IpRoute, LinkState } from '#lib/iproute.ts'

export interface BridgeWish {
  readonly name: string
  /** With the length of their network: `10.244.0.1/24`. The first names the bridge's MAC. */
  readonly addresses: readonly string[]
  readonly mtu?: number
}

/** Whether anything had to be done. Throws when the name is another thing's. */
export async function ensureBridge(ip: IpRoute, wish: BridgeWish): Promise<boolean> {
  const commands = planBridge(wish, await ip.link(wish.name))
  await ip.ip(commands)
  return commands.length > 0
}

export function planBridge({ name, addresses, mtu }: BridgeWish, found: LinkState | undefined): Commands {
  if (found !== undefined && found.linkinfo?.info_kind !== 'bridge') throw new Error(`The link "${name}" is no bridge`)
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

/** Those of the machine's own, like link-local ones, stay. */
export function planAddresses(name: string, wanted: readonly string[], found: LinkState | undefined): Commands {
  const has = (found?.addr_info ?? [])
    .filter(({ scope }) => scope === 'global')
    .map(({ local, prefixlen }) => `${local}/${prefixlen}`)
  // The new one first: who has none at all loses what depends on it.
  return [
    ...wanted
      .filter((address) => !has.includes(address))
      .map((address) => ['address', 'add', address, 'dev', name, ...(address.includes(':') ? ['nodad'] : [])]),
    ...has.filter((address) => !wanted.includes(address)).map((address) => ['address', 'delete', address, 'dev', name]),
  ]
}

/**
 * A bridge without one takes the lowest of its ports', and another with every pod that comes: whoever knew the old one would
 * talk to nobody. CNI's plugins once made theirs in the same way.
 */
export function macFor(address: string): string | undefined {
  const ip = parseIp(address.split('/')[0] ?? '')
  if (ip?.family !== 4) return undefined
  const bytes = [24n, 16n, 8n, 0n].map((shift) => Number((ip.value >> shift) & 255n))
  return ['0a', '58', ...bytes.map((byte) => byte.toString(16).padStart(2, '0'))].join(':')
}
