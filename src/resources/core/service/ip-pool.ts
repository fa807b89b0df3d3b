/**
 * Allocates Service addresses. Each allocated address is an IPAddress object with that name. Creating the object
 * allocates the address, so that several servers can share a cluster. Ranges are ServiceCIDR objects; the server's flag
 * is used until the first of a family exists.
 */
import type { Service } from '#apis/core/v1.ts'
import type { IPAddress, ServiceCIDR } from '#apis/networking/v1.ts'
import { planIpBands } from '#lib/net/cidr-allocator.ts'
import { type Cidr, contains, formatCidr, formatIp, type Ip, parseCidr, parseIp } from '#lib/net/cidr.ts'
import type { Random } from '#lib/random.ts'
import { ADDRESS_MANAGED_BY, ADDRESS_MANAGER, type IpFamily } from '#model/services.ts'

/** The store of IPAddress objects. */
export interface AddressBook {
  /** True if the cache has the object; it may lag behind. */
  has(name: string): boolean
  /** False if the object exists. Throws if the result is unknown. */
  create(address: IPAddress, signal?: AbortSignal): Promise<boolean>
  /** Has no effect if it does not exist. */
  delete(name: string, signal?: AbortSignal): Promise<void>
}

/** The reason why an address is not available, in upstream's words. */
export class AddressError extends Error {
  readonly code: 'full' | 'allocated' | 'mismatch' | 'range'

  constructor(code: AddressError['code'], message: string) {
    super(message)
    this.name = 'AddressError'
    this.code = code
  }
}

export const FAMILY_LABEL = 'ipaddress.kubernetes.io/ip-family'

/** The object that records the owner of the address; the repair compares it. */
export function addressObject(name: string, { metadata }: Service): IPAddress {
  const { namespace = '', name: service = '' } = metadata
  return {
    kind: 'IPAddress',
    apiVersion: 'networking.k8s.io/v1',
    metadata: {
      name,
      labels: { [FAMILY_LABEL]: name.includes(':') ? 'IPv6' : 'IPv4', [ADDRESS_MANAGED_BY]: ADDRESS_MANAGER },
    },
    spec: { parentRef: { resource: 'services', namespace, name: service } },
  }
}

export interface ServiceRange {
  readonly cidr: Cidr
  /** True if new addresses may be allocated from it. */
  readonly ready: boolean
}

/** Also true without a condition, because the controller may not run. */
function isReady({ metadata, status }: ServiceCIDR): boolean {
  const condition = status?.conditions?.find(({ type }) => type === 'Ready')
  return metadata.deletionTimestamp === undefined && (condition?.status ?? 'True') === 'True'
}

/** The distinct ranges of all ServiceCIDRs; one with several objects is ready if one of them is. */
export function planRanges(objects: readonly ServiceCIDR[], defaults: readonly Cidr[]): ServiceRange[] {
  const ranges = new Map<string, ServiceRange>()
  for (const object of objects) {
    const ready = isReady(object)
    for (const text of object.spec?.cidrs ?? []) {
      const cidr = parseCidr(text, { sloppy: true })
      if (cidr === undefined) continue
      const name = formatCidr(cidr)
      ranges.set(name, { cidr, ready: ready || ranges.get(name)?.ready === true })
    }
  }
  const all = [...ranges.values()]
  const missing = defaults.filter(({ family }) => !all.some(({ cidr }) => cidr.family === family))
  return [...all, ...missing.map((cidr) => ({ cidr, ready: true }))]
}

/** Without the network and broadcast addresses. */
export function isUsable(cidr: Cidr, ip: Ip): boolean {
  const { first, end } = planIpBands(cidr)
  const offset = ip.value - cidr.base
  return contains(cidr, ip) && offset >= first && offset < end
}

export interface IpPool {
  /** The canonical address. Throws AddressError if it is not available. */
  take(text: string, service: Service, terms: Terms): Promise<string>
  /** Any address of the family. Throws AddressError if none is left. */
  takeAny(family: IpFamily, service: Service, terms: Terms): Promise<string>
  /** Does not throw for a free address. */
  giveBack(text: string): Promise<void>
}

export interface Terms {
  /** Allocates nothing and returns a possible value. */
  readonly dryRun: boolean
  readonly signal: AbortSignal
}

export interface IpPoolOptions {
  readonly book: AddressBook
  readonly random: Random
  /** The current ranges. */
  readonly ranges: () => readonly ServiceRange[]
}

export function createIpPool({ book, random, ranges }: IpPoolOptions): IpPool {
  return {
    async take(text, service, { dryRun, signal }) {
      const ip = parseIp(text, { sloppy: true })
      if (ip === undefined) throw new AddressError('mismatch', `failed to parse service IP "${text}"`)
      const name = formatIp(ip)
      const range = ranges().find(({ cidr, ready }) => ready && isUsable(cidr, ip))
      if (range === undefined) throw outOfRange(name, dryRun ? ranges() : [])
      if (!dryRun && !(await book.create(addressObject(name, service), signal))) {
        throw new AddressError('allocated', 'provided IP is already allocated')
      }
      return name
    },
    async takeAny(family, service, { dryRun, signal }) {
      const usable = ranges().filter(({ cidr, ready }) => ready && `IPv${cidr.family}` === family)
      // Upstream returns the network address, which no Service can have, so that clients do not rely on it.
      if (dryRun && usable[0] !== undefined)
        return formatIp({ family: usable[0].cidr.family, value: usable[0].cidr.base })
      for (const { cidr } of usable) {
        for (const name of candidates(cidr, book, random)) {
          // Another server may be faster, or its allocation may not be in the cache yet.
          if (await book.create(addressObject(name, service), signal)) return name
        }
      }
      throw new AddressError('full', 'range is full')
    },
    async giveBack(text) {
      const ip = parseIp(text, { sloppy: true })
      if (ip !== undefined) await book.delete(formatIp(ip))
    },
  }
}

function outOfRange(name: string, shown: readonly ServiceRange[]): AddressError {
  const [range] = shown
  if (range === undefined) {
    return new AddressError('mismatch', 'the provided network does not match the current range')
  }
  const valid = `The range of valid IPs is ${formatCidr(range.cidr)}`
  return new AddressError('range', `the provided IP (${name}) is not in the valid range. ${valid}`)
}

/** Free addresses from a random offset: the upper band first; the lower band is left to static requests. */
function* candidates(cidr: Cidr, book: AddressBook, random: Random): Generator<string> {
  const { first, upper, end } = planIpBands(cidr)
  for (const [from, to] of [
    [upper, end],
    [first, upper],
  ] as const) {
    const size = to - from
    const start = size > 0n ? BigInt(`0x${random.bytes(16).toString('hex')}`) % size : 0n
    for (let step = 0n; step < size; step++) {
      const name = formatIp({ family: cidr.family, value: cidr.base + from + ((start + step) % size) })
      if (!book.has(name)) yield name
    }
  }
}
