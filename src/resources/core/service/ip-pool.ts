/**
 * The addresses Services can get. Every one that is taken is an IPAddress object of its own, named by it: creating the
 * object is taking the address, so that several servers can share a cluster. Ranges are ServiceCIDR objects; until the
 * first of a family exists, the range the server was started with stands in.
 */
import type { Service } from '#apis/core/v1.ts'
import type { IPAddress, ServiceCIDR } from '#apis/networking/v1.ts'
import { planIpBands } from '#lib/cidr-allocator.ts'
import { type Cidr, contains, formatCidr, formatIp, type Ip, parseCidr, parseIp } from '#lib/cidr.ts'
import type { Random } from '#lib/random.ts'
import { ADDRESS_MANAGED_BY, ADDRESS_MANAGER, type IpFamily } from '#model/services.ts'

/** Where the IPAddress objects are. */
export interface AddressBook {
  /** Whether there is one of that name, as far as is known; may lag behind. */
  has(name: string): boolean
  /** False when there is one already. Throws when it cannot be told. */
  create(address: IPAddress, signal?: AbortSignal): Promise<boolean>
  /** Nothing happens when there is none. */
  delete(name: string, signal?: AbortSignal): Promise<void>
}

/** Why an address cannot be had, in upstream's words. */
export class AddressError extends Error {
  readonly code: 'full' | 'allocated' | 'mismatch' | 'range'

  constructor(code: AddressError['code'], message: string) {
    super(message)
    this.name = 'AddressError'
    this.code = code
  }
}

export const FAMILY_LABEL = 'ipaddress.kubernetes.io/ip-family'

/** The object that says who has the address; also what repair compares with. */
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
  /** New addresses may be taken from it. */
  readonly ready: boolean
}

/** Also while nobody tells: the controller that does may not run. */
function isReady({ metadata, status }: ServiceCIDR): boolean {
  const condition = status?.conditions?.find(({ type }) => type === 'Ready')
  return metadata.deletionTimestamp === undefined && (condition?.status ?? 'True') === 'True'
}

/** The ranges of all ServiceCIDRs, each once; one that several objects have is ready when one of them is. */
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

/** Neither the address of the network nor that of its broadcasts. */
export function isUsable(cidr: Cidr, ip: Ip): boolean {
  const { first, end } = planIpBands(cidr)
  const offset = ip.value - cidr.base
  return contains(cidr, ip) && offset >= first && offset < end
}

export interface IpPool {
  /** The address in its canonical form. Throws an AddressError when it cannot be had. */
  take(text: string, service: Service, terms: Terms): Promise<string>
  /** Any address of that family. Throws an AddressError when there is none left. */
  takeAny(family: IpFamily, service: Service, terms: Terms): Promise<string>
  /** Does not throw for one that is not taken. */
  giveBack(text: string): Promise<void>
}

export interface Terms {
  /** Nothing is taken: the answer shows what could be. */
  readonly dryRun: boolean
  readonly signal: AbortSignal
}

export interface IpPoolOptions {
  readonly book: AddressBook
  readonly random: Random
  /** As they are now. */
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
      // Upstream shows the address of the network: nobody can have it, so nobody takes it for a promise.
      if (dryRun && usable[0] !== undefined)
        return formatIp({ family: usable[0].cidr.family, value: usable[0].cidr.base })
      for (const { cidr } of usable) {
        for (const name of candidates(cidr, book, random)) {
          // Somebody else may be faster, or have been and not be known yet.
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

/** Free addresses from a random one on: of the upper band first, the lower being left to who asks for a certain one. */
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
