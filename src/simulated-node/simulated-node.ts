/**
 * One simulated node: registers, renews its lease, reports its status and hosts pods. It acts as
 * `system:node:<name>`, so that the server authorizes it like a kubelet.
 */
import { Leases } from '#apis/coordination/v1.ts'
import { type Node, type NodeCondition, Nodes, type Pod, Pods } from '#apis/core/v1.ts'
import type { ApiClient } from '#client/api-client.ts'
import { EventRecorder } from '#client/events/event-recorder.ts'
import { createCsiNode, type NodeOwner } from '#kubelet/node/csi-node.ts'
import { nodeConditions, type NodeFacts, nodeOf, nodeStatusOf } from '#kubelet/node/node-status.ts'
import type { Rejection } from '#kubelet/pod/admission-rules.ts'
import { ALLOCATABLE_ENFORCED, type EventSpec, nodeIs, rebooted, STARTING } from '#kubelet/pod/events.ts'
import { AllocatedResources } from '#kubelet/pod/pod-admission.ts'
import { statusPatch } from '#kubelet/pod/status-patch.ts'
import { causeOf, withCauses } from '#lib/causes.ts'
import { formatIp, parseCidr, parseIp } from '#lib/net/cidr.ts'
import type { Random } from '#lib/random.ts'
import { isAlreadyExists, isConflict, isNotFound } from '#meta/status.ts'
import { microTimeOf } from '#meta/time.ts'
import type { ObjectEvent } from '#meta/watch.ts'
import { isTerminalPhase } from '#model/pods.ts'
import { hyperkubeVersion } from '#model/version.ts'

import type { Fault, Silence } from './fault.ts'
import { imageIdOf, imageSizeOf } from './image.ts'
import type { Mounts } from './mounts.ts'
import type { Host, SimulatedPod } from './simulated-pod.ts'

export interface NodePlan {
  readonly name: string
  readonly labels?: Readonly<Record<string, string>>
  readonly annotations?: Readonly<Record<string, string>>
  readonly taints?: NonNullable<Node['spec']['taints']>
  readonly capacity?: Readonly<Record<string, string>>
}

/** `warnings`: only events of type Warning. */
export type EventChoice = 'all' | 'warnings' | 'none'

export interface NodeOptions {
  readonly plan: NodePlan
  /** The number of nodes created before it. */
  readonly index: number
  readonly client: ApiClient
  readonly random: Random
  readonly faults: Iterable<Fault>
  readonly events: EventChoice
  readonly port: number
  /** Interval of lease renewals. */
  readonly renewMs: number
  readonly onError: (error: unknown) => void
  /** Ends all requests when it is aborted. */
  readonly signal: AbortSignal
}

const CAPACITY = { cpu: '8', memory: '32Gi', 'ephemeral-storage': '100Gi', pods: '110' }
/** As in kubelets: a lease lasts four renewals, and the status is reported every thirtieth renewal. */
const RENEWALS_PER_LEASE = 4
const RENEWALS_PER_REPORT = 30
/** The last address of a /24 range. */
const MAX_ADDRESS = 254
const NAMESPACE = 'kube-node-lease'
const RUNTIME = `simulated://${hyperkubeVersion()}`

export class SimulatedNode implements Host {
  readonly name: string
  readonly random: Random
  readonly addresses: readonly string[]
  readonly images: Set<string> = new Set()
  readonly faults: Iterable<Fault>
  readonly pods: Map<string, SimulatedPod> = new Map()
  /** Events missed while it was cut off, by pod UID. */
  readonly missed: Map<string, ObjectEvent<Pod>> = new Map()
  readonly startedMs: number
  /** While set, the node neither sends nor receives anything. */
  silence: Silence | undefined
  readonly #options: NodeOptions
  #facts: Omit<NodeFacts, 'images'>
  readonly #recorder: EventRecorder
  #conditions: readonly NodeCondition[] = []
  #uid = ''
  #leaseVersion: string | undefined
  #renewAtMs = 0
  #reportAtMs = 0
  #podCidr: string | undefined
  #node: Node | undefined
  readonly #allocated = new AllocatedResources()
  #nextAddress = 1
  readonly #taken = new Set<number>()

  constructor(options: NodeOptions) {
    const { plan, index, client, random, port, faults, onError, signal } = options
    this.#options = options
    this.name = plan.name
    this.random = random
    this.faults = faults
    this.startedMs = client.clock.now()
    this.addresses = [nodeAddress(index)]
    const machineId = random.bytes(16).toString('hex')
    this.#facts = {
      name: plan.name,
      addresses: this.addresses,
      capacity: { ...CAPACITY, ...plan.capacity },
      labels: plan.labels ?? {},
      machineId,
      bootId: random.bytes(16).toString('hex'),
      runtime: RUNTIME,
      kernel: '6.12.0',
      osImage: 'hyperkube simulated node',
      architecture: 'amd64',
      port,
    }
    this.#recorder = new EventRecorder({ client, source: { component: 'kubelet', host: plan.name }, signal, onError })
  }

  get capacity(): Readonly<Record<string, string>> {
    return this.#facts.capacity
  }

  get isRegistered(): boolean {
    return this.#uid !== ''
  }

  /** Does the work that is due and returns the time of the next. */
  async step(): Promise<number> {
    const { clock } = this.#options.client
    if (this.silence !== undefined) return Infinity
    if (!this.isRegistered) await this.#register()
    else {
      if (clock.now() >= this.#reportAtMs) await this.#report()
      if (clock.now() >= this.#renewAtMs) await this.#renew()
    }
    return Math.min(this.#renewAtMs, this.#reportAtMs)
  }

  /** Reports everything at once after a fault. */
  wake(wasDown: boolean): void {
    if (wasDown) this.#reboot()
    this.#reportAtMs = 0
    this.#renewAtMs = 0
  }

  #reboot(): void {
    const bootId = this.random.bytes(16).toString('hex')
    this.#facts = { ...this.#facts, bootId }
    this.#recordNodeEvent(rebooted(this.name, bootId))
  }

  /** Handles an update of the Node: its pod CIDR. */
  update(node: Node): void {
    const { managedFields: _, ...metadata } = node.metadata
    this.#node = { ...node, metadata }
    this.#podCidr ??= node.spec.podCIDR
  }

  admit(pod: Pod, isThere: boolean): Rejection | undefined {
    return this.#allocated.admit(pod, this.#node, isThere)
  }

  release(pod: Pod): void {
    this.#allocated.release(pod)
  }

  /** Time of the next attempt to mount the pod; Infinity when it is complete. */
  mount(simulatedPod: SimulatedPod, mounts: Mounts): Promise<number> {
    return mounts.mount(simulatedPod, this.#options.client, (event) => this.recordEvent(simulatedPod.pod, event))
  }

  takeAddress(known?: string): string {
    if (known !== undefined) {
      this.#taken.add(this.#offsetOf(known))
      return known
    }
    // The first address is the bridge's; freed addresses are reused only after all others.
    do this.#nextAddress = this.#nextAddress >= MAX_ADDRESS ? 2 : this.#nextAddress + 1
    while (this.#taken.has(this.#nextAddress) && this.#taken.size < MAX_ADDRESS - 1)
    this.#taken.add(this.#nextAddress)
    return formatIp({ family: 4, value: this.#base() + BigInt(this.#nextAddress) })
  }

  releaseAddress(address: string): void {
    this.#taken.delete(this.#offsetOf(address))
  }

  #base(): bigint {
    return parseCidr(this.#podCidr ?? podCidrOf(this.#options.index))?.base ?? 0n
  }

  #offsetOf(address: string): number {
    return Number((parseIp(address)?.value ?? 0n) - this.#base())
  }

  recordEvent(pod: Pod, event: EventSpec, fieldPath?: string): void {
    if (!this.#isRecorded(event) || this.silence !== undefined) return
    const { namespace = '', name = '', uid = '', resourceVersion = '' } = pod.metadata
    const about = { kind: 'Pod', namespace, name, uid, apiVersion: 'v1', resourceVersion }
    this.#recorder.record(fieldPath === undefined ? about : { ...about, fieldPath }, event)
  }

  /**
   * Patches the changed status and deletes the pod when it is over. Returns true if it is gone. Rejects for a retry
   * after a conflict with another write or another pod of that name.
   */
  reportPod(simulatedPod: SimulatedPod): Promise<boolean> {
    return withCauses([causeOf(Pods, simulatedPod.pod)], () => this.#reportPod(simulatedPod))
  }

  async #reportPod(simulatedPod: SimulatedPod): Promise<boolean> {
    const { client } = this.#options
    const { namespace, name = '', uid = '', deletionTimestamp } = simulatedPod.pod.metadata
    const status = simulatedPod.status(client.clock.now())
    const value = statusPatch(uid, simulatedPod.written, status)
    const where = { namespace, name }
    try {
      if (value !== undefined) {
        await client.patch(Pods, { ...where, subresource: 'status' }, { type: 'strategic', value })
        simulatedPod.written = status
        if (isTerminalPhase(status.phase)) this.release(simulatedPod.pod)
      }
      if (deletionTimestamp === undefined || !simulatedPod.isOver) return false
      await client.delete(Pods, where, { gracePeriodSeconds: 0, preconditions: { uid } })
    } catch (error) {
      if (isNotFound(error)) return true
      throw error
    }
    return true
  }

  async #register(): Promise<void> {
    const { client, plan } = this.#options
    const nowMs = client.clock.now()
    const { metadata, status } = nodeOf({ ...this.#facts, images: this.#images() }, nowMs)
    const annotations = { ...metadata.annotations, ...plan.annotations }
    const spec = plan.taints === undefined ? {} : { taints: plan.taints }
    let node: Node
    try {
      node = await client.create(Nodes, { metadata: { ...metadata, annotations }, spec, status })
      this.#recordNodeEvent(STARTING)
      for (const { type, reason = '' } of status.conditions ?? [])
        this.#recordNodeEvent(nodeIs(this.name, type === 'Ready' ? 'NodeReady' : reason.replace('Kubelet', 'Node')))
      this.#recordNodeEvent(ALLOCATABLE_ENFORCED)
    } catch (error) {
      if (!isAlreadyExists(error)) throw error
      node = await client.get(Nodes, { name: this.name })
      this.#conditions = node.status.conditions ?? []
      await this.#report()
    }
    await createCsiNode(client, ownerOf(node))
    this.#conditions = nodeConditions(node.status.conditions ?? [], nowMs)
    this.#uid = node.metadata.uid ?? ''
    this.update(node)
    // Spread over the period, so that the server's load is even.
    this.#renewAtMs = nowMs + Math.floor(this.random.float() * this.#options.renewMs)
    this.#reportAtMs = nowMs + Math.floor((0.5 + this.random.float() / 2) * this.#options.renewMs * RENEWALS_PER_REPORT)
  }

  async #report(): Promise<void> {
    const { client } = this.#options
    const nowMs = client.clock.now()
    const status = nodeStatusOf({ ...this.#facts, images: this.#images() }, this.#conditions, nowMs)
    this.#reportAtMs = nowMs + this.#options.renewMs * RENEWALS_PER_REPORT
    try {
      await client.patch(Nodes, { name: this.name, subresource: 'status' }, { type: 'strategic', value: { status } })
      this.#conditions = status.conditions ?? []
    } catch (error) {
      // A deleted node stays deleted until its kubelet is restarted.
      if (!isNotFound(error)) throw error
    }
  }

  async #renew(): Promise<void> {
    const { client } = this.#options
    const nowMs = client.clock.now()
    this.#renewAtMs = nowMs + this.#options.renewMs
    const spec = {
      holderIdentity: this.name,
      leaseDurationSeconds: Math.ceil((this.#options.renewMs * RENEWALS_PER_LEASE) / 1000),
      renewTime: microTimeOf(nowMs),
    }
    const metadata = {
      name: this.name,
      namespace: NAMESPACE,
      ownerReferences: [ownerOf({ metadata: { name: this.name, uid: this.#uid } })],
    }
    try {
      if (this.#leaseVersion !== undefined) {
        const { metadata: now } = await client.update(Leases, {
          metadata: { ...metadata, resourceVersion: this.#leaseVersion },
          spec,
        })
        this.#leaseVersion = now.resourceVersion
        return
      }
      this.#leaseVersion = (await client.create(Leases, { metadata, spec })).metadata.resourceVersion
    } catch (error) {
      if (isAlreadyExists(error) || isConflict(error))
        this.#leaseVersion = (await client.get(Leases, metadata)).metadata.resourceVersion
      else if (isNotFound(error)) this.#leaseVersion = undefined
      else throw error
      this.#renewAtMs = nowMs
    }
  }

  #images(): { names: string[]; sizeBytes: number }[] {
    const images = Array.from(this.images, (name) => ({ names: [imageIdOf(name), name], sizeBytes: imageSizeOf(name) }))
    return images.sort((a, b) => b.sizeBytes - a.sizeBytes)
  }

  #isRecorded({ type }: EventSpec): boolean {
    const { events } = this.#options
    return events === 'all' || (events === 'warnings' && type === 'Warning')
  }

  #recordNodeEvent(event: EventSpec): void {
    if (this.#isRecorded(event)) this.#recorder.record({ kind: 'Node', name: this.name, apiVersion: 'v1' }, event)
  }
}

function ownerOf({ metadata: { name = '', uid = '' } }: Pick<Node, 'metadata'>): NodeOwner {
  return { apiVersion: 'v1', kind: 'Node', name, uid }
}

/** Addresses start at 172.18.0.2. */
function nodeAddress(index: number): string {
  return formatIp({ family: 4, value: (parseIp('172.18.0.2')?.value ?? 0n) + BigInt(index) })
}

/** The pod CIDR for clusters that do not allocate CIDRs to nodes. */
function podCidrOf(index: number): string {
  return `10.${128 + (index >> 8)}.${index & 255}.0/24`
}
