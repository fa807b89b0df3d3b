/**
 * Allocates devices to one pod in one scheduling cycle: finds candidates on each node, then reserves those of the
 * chosen node. A search that takes more than a few milliseconds returns BUSY and continues on the next call.
 */
import type { Node } from '#apis/core/v1.ts'
import { type AllocationResult, type ResourceClaim, ResourceClaims } from '#apis/resource/v1.ts'
import { referenceTo } from '#client/events/event-recorder.ts'
import { sleep } from '#lib/clock.ts'
import { uuid } from '#lib/random.ts'
import { SLICE_MS, type Steps } from '#lib/time-slicing.ts'
import { objectKey } from '#meta/object.ts'
import { epochMsOf } from '#meta/time.ts'

import type { NodeInfo } from '../cluster/node-info.ts'
import type { PodInfo } from '../cluster/pod-info.ts'
import { BUSY, failed, type Handle, type PluginState, unresolvable, type Verdict } from '../framework/framework.ts'
import { allocate } from './allocator.ts'
import { bindClaim, createClaim, deleteClaim, unreserveClaim, updatePodClaimStatus } from './claim-writing.ts'
import type { TakenDevice } from './device-requests.ts'
import type { Devices } from './devices.ts'
import { type ExtendedRequests, extendedRequests, isDeviceResource, UNMADE } from './extended-resources.ts'
import { isSelected } from './inventory.ts'
import { isMadeReady, isReservedFor, slowDevices } from './pod-claims.ts'
import { allocationOf } from './result.ts'

/** The poll interval for binding conditions. */
const LOOK_EVERY_MS = 5000
/** The maximum number of alternatives of a request: the first one scores this much. */
const MAX_ALTERNATIVES = 8
const NOT_HERE = unresolvable('resourceclaim not available on the node')
const LEFT_OVER = unresolvable('cannot schedule extended resource claim')
const UNKNOWN_RESOURCE = unresolvable('cannot fit resource')

export interface PodDevicesParts {
  readonly handle: Handle
  readonly devices: Devices
  /** The search timeout for one node; 0: no limit. */
  readonly filterTimeoutMs: number
  readonly bindingTimeoutMs: number
}

/** The allocations that unallocated claims would get on a node, in order. */
interface Offer {
  readonly allocations: readonly (readonly [claim: ResourceClaim, allocation: AllocationResult])[]
  readonly extended?: ExtendedRequests
  /** The ledger generation of that result. */
  readonly version: number
}

interface RunningSearch {
  readonly node: string
  readonly claims: readonly ResourceClaim[]
  readonly extended: ExtendedRequests | undefined
  readonly steps: Steps<readonly (readonly TakenDevice[])[] | string>
  readonly begunMs: number
}

export class PodDevices implements PluginState {
  readonly #pod: PodInfo
  readonly #parts: PodDevicesParts
  /** The claims as last written. */
  readonly #claims: ResourceClaim[]
  #extended: ResourceClaim | undefined
  readonly #verdicts = new Map<string, { readonly verdict: Verdict }>()
  readonly #offers = new Map<string, Offer>()
  #underway: RunningSearch | undefined
  #turnEndsMs: number
  readonly #unavailable = new Set<ResourceClaim>()
  /** Promised allocations by claim uid. */
  readonly #promised = new Map<string, AllocationResult>()
  #isReserved = false

  constructor(
    pod: PodInfo,
    { claims, extended }: { readonly claims: ResourceClaim[]; readonly extended: ResourceClaim | undefined },
    parts: PodDevicesParts,
  ) {
    this.#pod = pod
    this.#parts = parts
    this.#claims = claims
    this.#extended = extended
    this.#turnEndsMs = parts.handle.clock.elapsed() + SLICE_MS
  }

  resume(): void {
    this.#turnEndsMs = this.#parts.handle.clock.elapsed() + SLICE_MS
  }

  filter(info: NodeInfo): Verdict {
    const known = this.#verdicts.get(info.name)
    if (known !== undefined) return known.verdict
    const verdict = this.#evaluate(info)
    if (verdict !== BUSY) this.#verdicts.set(info.name, { verdict })
    return verdict
  }

  #evaluate(info: NodeInfo): Verdict {
    const { node } = info
    if (node === undefined) return undefined
    const extended = this.#extended === undefined ? undefined : this.#extendedOn(info)
    if (extended !== undefined && 'code' in extended) return extended
    if (this.#claims.length === 0 && extended === undefined) return undefined
    const missing = this.#claims.filter((claim) => !this.#isAvailable(claim, node))
    const verdict = this.#search(node, extended)
    if (verdict !== undefined) return verdict
    for (const claim of missing) this.#unavailable.add(claim)
    return missing.length > 0 ? NOT_HERE : undefined
  }

  /** Of claims with an allocation. */
  #isAvailable(claim: ResourceClaim, node: Node): boolean {
    const { allocation } = claim.status
    if (allocation === undefined) return true
    if (allocation.nodeSelector !== undefined && !isSelected(allocation.nodeSelector, node)) return false
    try {
      return isMadeReady(claim) || !this.#isLate(claim)
    } catch {
      return false
    }
  }

  #isLate(claim: ResourceClaim): boolean {
    const { allocationTimestamp } = claim.status.allocation ?? {}
    if (allocationTimestamp === undefined || slowDevices(claim).length === 0) return false
    const { handle, bindingTimeoutMs } = this.#parts
    return epochMsOf(allocationTimestamp) + bindingTimeoutMs < handle.clock.now()
  }

  /** The extended resources that devices must back on this node. Undefined: none, and there are no other claims. */
  #extendedOn({ allocatable }: NodeInfo): ExtendedRequests | NonNullable<Verdict> | undefined {
    if (this.staleExtendedClaim !== undefined) return LEFT_OVER
    const classes = new Map<string, string>()
    for (const [name, amount] of this.#pod.requests.others ?? []) {
      if (amount === 0 || !isDeviceResource(name)) continue
      const deviceClass = this.#parts.devices.classFor(name)
      if (deviceClass !== undefined && (allocatable.others?.get(name) ?? 0) === 0)
        classes.set(name, deviceClass.metadata.name ?? '')
      else if (allocatable.others?.has(name) !== true) return UNKNOWN_RESOURCE
    }
    if (classes.size === 0 && this.#claims.length === 0) return undefined
    return extendedRequests(this.#pod.pod, classes)
  }

  /** Continues or starts the search on this node. */
  #search(node: Node, extended: ExtendedRequests | undefined): Verdict {
    const { clock } = this.#parts.handle
    const { name = '' } = node.metadata
    const pending = this.#claims.filter(({ status }) => status.allocation === undefined)
    if (pending.length === 0 && extended === undefined) return undefined
    if (clock.elapsed() >= this.#turnEndsMs) return BUSY
    if (this.#underway?.node !== name) this.#underway = this.#begin(node, pending, extended)
    try {
      return this.#continueSearch(node, this.#underway)
    } catch (error) {
      return failed((error as Error).message)
    }
  }

  #begin(node: Node, pending: readonly ResourceClaim[], extended: ExtendedRequests | undefined): RunningSearch {
    const { devices, handle } = this.#parts
    const { inventory, ledger, selection } = devices
    const own = this.#extended
    const claims =
      own === undefined || extended === undefined
        ? pending
        : [...pending, { ...own, spec: { devices: { requests: extended.requests } } }]
    const steps = allocate({
      node,
      pools: inventory.poolsFor(node),
      claims,
      ledger,
      classOf: (name) => devices.classOf(name),
      matches: (expression, offered) => selection.matches(expression, offered),
      heedsTaints: handle.isEnabled('DRADeviceTaints'),
    })
    return { node: node.metadata.name ?? '', claims, extended, steps, begunMs: handle.clock.elapsed() }
  }

  /** Runs until the search ends, its time slice is over, or its timeout passes. */
  #continueSearch(node: Node, { node: name, steps, begunMs, claims, extended }: RunningSearch): Verdict {
    const { handle, devices, filterTimeoutMs } = this.#parts
    for (;;) {
      const { done, value } = steps.next()
      if (done === true) {
        if (typeof value === 'string') return unresolvable(value)
        const allocations = claims.map((claim, at) => {
          const own = allocationOf(claim, value[at] ?? [], node, () => uuid(handle.random))
          return [claim, own] as const
        })
        const { version } = devices.ledger
        this.#offers.set(name, { allocations, version, ...(extended !== undefined && { extended }) })
        return undefined
      }
      const nowMs = handle.clock.elapsed()
      if (filterTimeoutMs > 0 && nowMs - begunMs >= filterTimeoutMs)
        return failed(`node ${name}: timed out trying to allocate devices`)
      if (nowMs >= this.#turnEndsMs) return BUSY
    }
  }

  /** The allocations that unallocated claims would get there. */
  offerOn(node: string): Offer['allocations'] {
    return this.#offers.get(node)?.allocations ?? []
  }

  get hasAlternatives(): boolean {
    return this.#claims.some(({ spec }) =>
      (spec.devices.requests ?? []).some(({ firstAvailable = [] }) => firstAvailable.length > 0),
    )
  }

  /** An earlier alternative scores more. */
  scoreOn(node: string): number {
    const offer = this.#offers.get(node)
    if (offer === undefined) return 0
    const given = new Map(offer.allocations.map(([{ metadata }, allocation]) => [metadata.uid, allocation]))
    return this.#claims.reduce((sum, claim) => {
      const allocation = claim.status.allocation ?? given.get(claim.metadata.uid)
      const met = new Set((allocation?.devices.results ?? []).map(({ request }) => request))
      const points = (claim.spec.devices.requests ?? []).flatMap(({ name, firstAvailable = [] }) =>
        firstAvailable.map((one, at) => (met.has(`${name}/${one.name}`) ? MAX_ALTERNATIVES - at : 0)),
      )
      return points.reduce((all, more) => all + more, sum)
    }, 0)
  }

  /** A claim that does not fit some node and that no other pod uses. */
  claimToDeallocate(): ResourceClaim | undefined {
    return [...this.#unavailable].find(({ status: { reservedFor = [] } }) =>
      reservedFor.every(({ uid }) => uid === this.#pod.uid),
    )
  }

  /** Deletes the claim of an earlier attempt; a new one replaces it. */
  get staleExtendedClaim(): ResourceClaim | undefined {
    return this.#extended?.metadata.name === UNMADE ? undefined : this.#extended
  }

  reserve(info: NodeInfo): Verdict {
    const { ledger } = this.#parts.devices
    let offer = this.#offers.get(info.name)
    // Another pod took the devices after the filter ran.
    if (offer !== undefined && offer.version !== ledger.version) {
      this.#offers.delete(info.name)
      this.#verdicts.delete(info.name)
      this.resume()
      const verdict = this.filter(info)
      if (verdict !== undefined) return failed(verdict.reasons[0] ?? 'devices were taken in the meantime')
      offer = this.#offers.get(info.name)
    }
    for (const [
      {
        metadata: { uid = '' },
      },
      allocation,
    ] of offer?.allocations ?? []) {
      ledger.promise(uid, allocation)
      this.#promised.set(uid, allocation)
    }
    this.#isReserved = true
    return undefined
  }

  unreserve(): Promise<void> | undefined {
    if (!this.#isReserved) return undefined
    this.#isReserved = false
    for (const uid of this.#promised.keys()) this.#parts.devices.ledger.release(uid)
    this.#promised.clear()
    return this.#undo()
  }

  async #undo(): Promise<void> {
    const { handle } = this.#parts
    const { pod } = this.#pod
    const undoing = this.#claims
      .filter((claim) => isReservedFor(claim, pod))
      .map((claim) => unreserveClaim(claim, pod, handle))
    if (this.staleExtendedClaim !== undefined) undoing.push(deleteClaim(this.staleExtendedClaim, handle))
    for (const { status, reason } of (await Promise.allSettled(undoing)) as readonly {
      status: string
      reason?: unknown
    }[])
      if (status === 'rejected') handle.log.info('Failed to deallocate claim', { pod: this.#pod.key, error: reason })
  }

  willPreBind(): boolean {
    return true
  }

  async preBind({ name }: NodeInfo, signal: AbortSignal): Promise<Verdict> {
    const { handle } = this.#parts
    const { pod } = this.#pod
    try {
      for (const [at, claim] of this.#claims.entries())
        if (!isReservedFor(claim, pod)) this.#claims[at] = await this.#bind(claim, signal)
      await this.#bindExtended(name, signal)
      const all = [...this.#claims, ...(this.staleExtendedClaim === undefined ? [] : [this.staleExtendedClaim])]
      if (!all.some((claim) => slowDevices(claim).length > 0)) return undefined
      const note = `waiting for binding conditions for device on node ${name}`
      handle.record(referenceTo(pod), {
        type: 'Normal',
        reason: 'BindingConditionsPending',
        action: 'Scheduling',
        note,
      })
      await this.#waitUntilReady(all, signal)
      return undefined
    } catch (error) {
      return failed((error as Error).message)
    }
  }

  async #bind(claim: ResourceClaim, signal: AbortSignal): Promise<ResourceClaim> {
    const { handle } = this.#parts
    const { uid = '', namespace, name = '' } = claim.metadata
    try {
      return await bindClaim(claim, this.#promised.get(uid), this.#pod.pod, { writer: handle, signal })
    } catch (error) {
      // The write may have succeeded, so keep the promise: no other claim may get these devices.
      const stored = await handle.client.get(ResourceClaims, { namespace, name }).catch(() => undefined)
      if (stored !== undefined) handle.of(ResourceClaims).learn(stored)
      throw error
    }
  }

  async #bindExtended(node: string, signal: AbortSignal): Promise<void> {
    const { handle, devices } = this.#parts
    const { extended } = this.#offers.get(node) ?? {}
    const own = this.#extended
    const allocation = this.#promised.get(own?.metadata.uid ?? '')
    if (own === undefined || extended === undefined || allocation === undefined || extended.requests.length === 0)
      return
    const made = await createClaim(own, extended, handle, signal)
    this.#extended = made
    // Until the informer has it.
    const { uid = '' } = made.metadata
    devices.ledger.promise(uid, allocation)
    this.#promised.set(uid, allocation)
    devices.ledger.release(own.metadata.uid ?? '')
    this.#extended = await this.#bind(made, signal)
    await updatePodClaimStatus(this.#pod.pod, extended, made, handle)
  }

  /** Throws if a driver fails or the timeout passes. */
  async #waitUntilReady(claims: readonly ResourceClaim[], signal: AbortSignal): Promise<void> {
    const { handle, bindingTimeoutMs } = this.#parts
    const endMs = handle.clock.now() + bindingTimeoutMs
    for (;;) {
      const current = claims.map((claim) => handle.of(ResourceClaims).get(objectKey(claim)) ?? claim)
      const slow = current.find((claim) => !isMadeReady(claim))
      if (slow === undefined) return
      if (this.#isLate(slow)) throw new Error(`device binding timeout: claim=${slow.metadata.name}`)
      if (handle.clock.now() >= endMs) throw new Error('device binding timeout: context deadline exceeded')
      await sleep(handle.clock, LOOK_EVERY_MS, signal)
    }
  }
}
