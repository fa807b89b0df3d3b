/**
 * Reconciles allocations with the existing Services: releases addresses and ports that a crash left, and allocates
 * missing ones. The plan is pure data; a separate step writes it.
 */
import { type Service, Services } from '#apis/core/v1.ts'
import type { Kind } from '#apis/kinds.ts'
import { type IPAddress, IPAddresses } from '#apis/networking/v1.ts'
import { type Cidr, formatIp, parseIp } from '#lib/net/cidr.ts'
import { keyOf, objectKey } from '#meta/object.ts'
import { epochMsOf } from '#meta/time.ts'
import { ADDRESS_MANAGED_BY, ADDRESS_MANAGER, clusterIpsOf } from '#model/services.ts'

import { type AddressBook, addressObject, FAMILY_LABEL, isUsable } from './ip-pool.ts'
import type { PortLedger, PortRange } from './node-ports.ts'

/** A note for users, as a Warning event about the object. */
export interface RepairNote {
  readonly kind: Kind
  readonly about: Service | IPAddress
  readonly reason: string
  readonly action: string
  readonly message: string
}

export type IpRepair =
  | { readonly kind: 'create'; readonly address: IPAddress; readonly note: RepairNote }
  /** Deletes and recreates the object. */
  | { readonly kind: 'replace'; readonly address: IPAddress; readonly note?: RepairNote }
  | { readonly kind: 'delete'; readonly name: string; readonly note: RepairNote }
  /** Cannot be repaired. */
  | { readonly kind: 'tell'; readonly note: RepairNote }

export interface IpRepairInput {
  readonly services: readonly Service[]
  readonly addresses: readonly IPAddress[]
  /** The ranges of all ServiceCIDRs, ready or not. */
  readonly ranges: readonly Cidr[]
  readonly nowMs: number
}

/** The maximum duration of a request: until then an address may precede its Service. */
const GRACE_MS = 60_000
/** The maximum duration of releasing the address of an unwritten Service. */
const REVERT_MS = 5_000

export function planIpRepair({ services, addresses, ranges, nowMs }: IpRepairInput): IpRepair[] {
  const byName = new Map(addresses.map((address) => [address.metadata.name ?? '', address]))
  const byKey = new Map(services.map((service) => [objectKey(service), service]))
  const repairs = services.flatMap((service) =>
    clusterIpsOf(service.spec).flatMap((text) => checkIp(service, text, { byName, byKey, ranges })),
  )
  // Addresses under repair would look wrong in their current state.
  const replaced = new Set(repairs.flatMap((one) => (one.kind === 'replace' ? [one.address.metadata.name] : [])))
  const others = addresses.filter((address) => isManaged(address) && !replaced.has(address.metadata.name))
  return [...repairs, ...others.flatMap((address) => checkAddress(address, byKey, nowMs))]
}

interface RepairIndex {
  readonly byName: ReadonlyMap<string, IPAddress>
  readonly byKey: ReadonlyMap<string, Service>
  readonly ranges: readonly Cidr[]
}

function isManaged({ metadata }: IPAddress): boolean {
  return metadata.labels?.[ADDRESS_MANAGED_BY] === ADDRESS_MANAGER
}

/** Checks that an address of a Service is allocated to it. */
function checkIp(service: Service, text: string, { byName, byKey, ranges }: RepairIndex): IpRepair[] {
  const ip = parseIp(text, { sloppy: true })
  const note = (reason: string, action: string, message: string): RepairNote => ({
    kind: Services,
    about: service,
    reason,
    action,
    message,
  })
  if (ip === undefined) {
    const message = `Cluster IP ${text} is not a valid IP; please recreate Service`
    return [{ kind: 'tell', note: note('ClusterIPNotValid', 'ClusterIPValidation', message) }]
  }
  const name = formatIp(ip)
  const shown = `[IPv${ip.family}]: ${name}`
  const allocation = (reason: string, message: string): RepairNote => note(reason, 'ClusterIPAllocation', message)
  if (!ranges.some((cidr) => isUsable(cidr, ip))) {
    const message = `Cluster IP ${shown} is not within any configured Service CIDR; please recreate service`
    return [{ kind: 'tell', note: allocation('ClusterIPOutOfRange', message) }]
  }
  const address = byName.get(name)
  const wanted = addressObject(name, service)
  if (address === undefined) {
    const message = `Cluster IP ${shown} is not allocated; repairing`
    return [{ kind: 'create', address: wanted, note: allocation('ClusterIPNotAllocated', message) }]
  }
  const owner = ownerOf(address, byKey)
  if (owner === 'none') {
    const message = `the ClusterIP ${shown} for Service ${objectKey(service)} has a wrong reference; repairing`
    return [{ kind: 'replace', address: wanted, note: allocation('ClusterIPNotAllocated', message) }]
  }
  const tells: IpRepair[] = []
  if (objectKey(owner) !== objectKey(service) && clusterIpsOf(owner.spec).includes(name)) {
    const message = `Cluster IP [IPv${ip.family}]:${name} was assigned to multiple services; please recreate service`
    tells.push({ kind: 'tell', note: allocation('ClusterIPAlreadyAllocated', message) })
  }
  const labelled = isManaged(address) && address.metadata.labels?.[FAMILY_LABEL] === `IPv${ip.family}`
  return labelled ? tells : [...tells, { kind: 'replace', address: wanted }]
}

/** The Service of an address, if it exists. */
function ownerOf({ spec }: IPAddress, byKey: ReadonlyMap<string, Service>): Service | 'none' {
  const { group = '', resource = '', namespace, name = '' } = spec?.parentRef ?? {}
  return (group === '' && resource === 'services' ? byKey.get(keyOf(namespace, name)) : undefined) ?? 'none'
}

/** Checks that an address is allocated to a Service that uses it. */
function checkAddress(address: IPAddress, byKey: ReadonlyMap<string, Service>, nowMs: number): IpRepair[] {
  const { name = '' } = address.metadata
  const { group = '', resource = '', namespace, name: service = '' } = address.spec?.parentRef ?? {}
  const key = keyOf(namespace, service)
  const drop = (reason: string, message: string): IpRepair[] => [
    {
      kind: 'delete',
      name,
      note: { kind: IPAddresses, about: address, reason, action: 'IPAddressAllocation', message },
    },
  ]
  if (group !== '' || resource !== 'services') {
    const message = `IPAddress ${name} appears to have been modified, not referencing a Service: cleaning up`
    return drop('IPAddressNotAllocated', message)
  }
  const owner = byKey.get(key)
  if (isEarly(address, owner, nowMs) || owner?.spec.clusterIPs?.includes(name) === true) return []
  if (owner !== undefined) {
    const message = `IPAddress: ${name} for Service ${key} has a wrong reference; cleaning up`
    return drop('IPAddressWrongReference', message)
  }
  return drop('IPAddressNotAllocated', `IPAddress: ${name} for Service ${key} appears to have leaked: cleaning up`)
}

function bornMs({ metadata: { creationTimestamp } }: Service | IPAddress): number {
  return creationTimestamp === undefined ? 0 : epochMsOf(creationTimestamp)
}

/** The address may precede its Service, or is about to be released. */
function isEarly(address: IPAddress, owner: Service | undefined, nowMs: number): boolean {
  const ageMs = nowMs - bornMs(address)
  if (owner === undefined) return ageMs <= GRACE_MS
  if (owner.spec.type === 'ExternalName' && ageMs < GRACE_MS) return true
  return bornMs(address) > bornMs(owner) && ageMs < REVERT_MS
}

/** Applies the plan; objects that others created or deleted in the meantime are fine. */
export async function applyIpRepair(
  repairs: readonly IpRepair[],
  book: AddressBook,
  tell: (note: RepairNote) => void,
  signal?: AbortSignal,
): Promise<void> {
  for (const repair of repairs) {
    if (repair.note !== undefined) tell(repair.note)
    if (repair.kind === 'delete') await book.delete(repair.name, signal)
    if (repair.kind === 'replace') await book.delete(repair.address.metadata.name ?? '', signal)
    if (repair.kind === 'create' || repair.kind === 'replace') await book.create(repair.address, signal)
  }
}

/** The rounds after which an unused port is released: its Service may not be written yet. */
const ROUNDS_BEFORE_CLEANUP = 3

export interface PortRepairInput {
  readonly services: readonly Service[]
  /** The current ledger. */
  readonly taken: ReadonlySet<number>
  readonly range: PortRange
  /** From the previous round: remaining rounds by port. */
  readonly leaks: ReadonlyMap<number, number>
}

export interface PortRepair {
  /** The new ledger. */
  readonly taken: ReadonlySet<number>
  /** For the next round. */
  readonly leaks: ReadonlyMap<number, number>
  readonly notes: readonly RepairNote[]
}

export function planPortRepair({ services, taken, range, leaks }: PortRepairInput): PortRepair {
  const used = new Set<number>()
  const notes = services.flatMap((about) =>
    claimedPorts(about).flatMap((port) => {
      const fault = portFault(port, { used, taken, range })
      if (port >= range.first && port <= range.last) used.add(port)
      return fault === undefined ? [] : [{ kind: Services, about, action: 'PortAllocation', ...fault }]
    }),
  )
  const left = new Map<number, number>()
  for (const port of taken) {
    const rounds = leaks.get(port) ?? ROUNDS_BEFORE_CLEANUP - 1
    if (!used.has(port) && rounds > 0) left.set(port, rounds - 1)
  }
  return { taken: new Set([...used, ...left.keys()]), leaks: left, notes }
}

function portFault(
  port: number,
  { used, taken, range }: { used: ReadonlySet<number>; taken: ReadonlySet<number>; range: PortRange },
): { readonly reason: string; readonly message: string } | undefined {
  if (port < range.first || port > range.last) {
    const message = `Port ${port} is not within the port range ${range.first}-${range.last}; please recreate service`
    return { reason: 'PortOutOfRange', message }
  }
  if (used.has(port)) {
    const message = `Port ${port} was assigned to multiple services; please recreate service`
    return { reason: 'PortAlreadyAllocated', message }
  }
  return taken.has(port)
    ? undefined
    : { reason: 'PortNotAllocated', message: `Port ${port} is not allocated; repairing` }
}

/** One port with two protocols counts once, twice with the same protocol conflicts. */
function claimedPorts({ spec }: Service): number[] {
  const seen = new Map<number, Set<string>>()
  const claimed: number[] = []
  const claim = (port: number, protocol: string): void => {
    const protocols = seen.get(port)
    if (protocols === undefined || protocols.has(protocol)) claimed.push(port)
    seen.set(port, new Set([...(protocols ?? []), protocol]))
  }
  for (const { nodePort = 0, protocol = '' } of spec.ports ?? []) if (nodePort !== 0) claim(nodePort, protocol)
  if ((spec.healthCheckNodePort ?? 0) !== 0) claim(spec.healthCheckNodePort ?? 0, 'TCP')
  return claimed
}

/**
 * Plans with the current ledger and writes the result. `services` is read after the ledger: ports are allocated before
 * a Service exists and released after it is deleted, so a port that the ledger lacks is really missing.
 */
export async function applyPortRepair(
  ledger: PortLedger,
  services: () => Promise<readonly Service[]>,
  input: Pick<PortRepairInput, 'range' | 'leaks'>,
): Promise<PortRepair> {
  return ledger.rebuild(async (taken, isNew) => {
    const repair = planPortRepair({ ...input, services: await services(), taken })
    // A new ledger lacks every port, which is not reported.
    return { taken: repair.taken, outcome: isNew ? { ...repair, notes: [] } : repair }
  })
}
