/**
 * One simulated node: registers, renews its lease, says now and then that it is well, and is a host to pods. It acts with
 * the identity that a kubelet has, so that the server judges it as one.
 */
import { Leases } from '#apis/coordination/v1.ts'
import { type Node, type NodeCondition, Nodes, type Pod, Pods } from '#apis/core/v1.ts'
import type { ApiClient } from '#client/api-client.ts'
import { EventRecorder } from '#client/event-recorder.ts'
import { formatIp, parseCidr, parseIp } from '#lib/cidr.ts'
import type { Random } from '#lib/random.ts'
import { isAlreadyExists, isConflict, isNotFound } from '#meta/status.ts'
import { microTimeOf } from '#meta/time.ts'
import type { ObjectEvent } from '#meta/watch.ts'
import { isTerminalPhase } from '#model/pods.ts'
import { hyperkubeVersion } from '#model/version.ts'

import type { Rejection } from '../admission-rules.ts'
import { describeDrivers, type NodeOwner } from '../csi-node.ts'
import { ALLOCATABLE_ENFORCED, nodeIs, type Note, rebooted, STARTING } from '../kubelet-notes.ts'
import { nodeConditions, type NodeFacts, nodeOf, nodeStatusOf } from '../node-status.ts'
import { Charges } from '../pod-admission.ts'
import { statusPatch } from '../status-patch.ts'
import type { Fault, Silence } from './fault.ts'
import { imageIdOf, imageSizeOf } from './image.ts'
import type { Mounts } from './mounts.ts'
import type { Host, PodLife } from './pod-life.ts'

export interface NodePlan {
  readonly name: string
  readonly labels?: Readonly<Record<string, string>>
  readonly annotations?: Readonly<Record<string, string>>
  readonly taints?: NonNullable<Node['spec']['taints']>
  readonly capacity?: Readonly<Record<string, string>>
}

/** `warnings`: of what goes wrong alone. */
export type EventChoice = 'all' | 'warnings' | 'none'

export interface NodeOptions {
  readonly plan: NodePlan
  /** How many nodes were made before it. */
  readonly index: number
  readonly client: ApiClient
  readonly random: Random
  readonly faults: Iterable<Fault>
  readonly events: EventChoice
  readonly port: number
  /** How often the lease is renewed. */
  readonly renewMs: number
  readonly onError: (error: unknown) => void
  /** Nothing is said any more when it is aborted. */
  readonly signal: AbortSignal
}

const CAPACITY = { cpu: '8', memory: '32Gi', 'ephemeral-storage': '100Gi', pods: '110' }
/** What kubelets do: leases are good for four renewals, and every thirtieth time all is said though nothing has changed. */
const RENEWALS_PER_LEASE = 4
const RENEWALS_PER_REPORT = 30
/** In a range of 24 bits. */
const MAX_ADDRESS = 254
const NAMESPACE = 'kube-node-lease'
const RUNTIME = `simulated://${hyperkubeVersion()}`

export class NodeLife implements Host {
  readonly name: string
  readonly random: Random
  readonly addresses: readonly string[]
  readonly images: Set<string> = new Set()
  readonly faults: Iterable<Fault>
  readonly pods: Map<string, PodLife> = new Map()
  /** What it would have heard, by uid, had it not been cut off. */
  readonly missed: Map<string, ObjectEvent<Pod>> = new Map()
  readonly startedMs: number
  /** Says and hears nothing, while it is set. */
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
  readonly #charges = new Charges()
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

  /** Does what is due; returns when there is something again. */
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

  /** After a silence: everything is said at once. */
  wake(wasDown: boolean): void {
    if (wasDown) this.#reboot()
    this.#reportAtMs = 0
    this.#renewAtMs = 0
  }

  #reboot(): void {
    const bootId = this.random.bytes(16).toString('hex')
    this.#facts = { ...this.#facts, bootId }
    this.#say(rebooted(this.name, bootId))
  }

  /** The server's news of the node: its range of addresses, or that somebody deleted it. */
  learn(node: Node): void {
    const { managedFields: _, ...metadata } = node.metadata
    this.#node = { ...node, metadata }
    this.#podCidr ??= node.spec.podCIDR
  }

  admit(pod: Pod, isThere: boolean): Rejection | undefined {
    return this.#charges.admit(pod, this.#node, isThere)
  }

  release(pod: Pod): void {
    this.#charges.release(pod)
  }

  /** When to try again to bring the pod what it is made from; Infinity when it has all. */
  bring(life: PodLife, mounts: Mounts): Promise<number> {
    return mounts.bring(life, this.#options.client, (note) => this.note(life.pod, note))
  }

  takeAddress(known?: string): string {
    if (known !== undefined) {
      this.#taken.add(this.#placeOf(known))
      return known
    }
    // The first is the bridge's own; those given back are given again only after all others.
    do this.#nextAddress = this.#nextAddress >= MAX_ADDRESS ? 2 : this.#nextAddress + 1
    while (this.#taken.has(this.#nextAddress) && this.#taken.size < MAX_ADDRESS - 1)
    this.#taken.add(this.#nextAddress)
    return formatIp({ family: 4, value: this.#base() + BigInt(this.#nextAddress) })
  }

  giveBack(address: string): void {
    this.#taken.delete(this.#placeOf(address))
  }

  #base(): bigint {
    return parseCidr(this.#podCidr ?? podCidrOf(this.#options.index))?.base ?? 0n
  }

  #placeOf(address: string): number {
    return Number((parseIp(address)?.value ?? 0n) - this.#base())
  }

  note(pod: Pod, said: Note, fieldPath?: string): void {
    if (!this.#isTold(said) || this.silence !== undefined) return
    const { namespace = '', name = '', uid = '', resourceVersion = '' } = pod.metadata
    const about = { kind: 'Pod', namespace, name, uid, apiVersion: 'v1', resourceVersion }
    this.#recorder.record(fieldPath === undefined ? about : { ...about, fieldPath }, said)
  }

  /**
   * Writes what has changed of the pod, and lets it go when it is over and deleted. Returns whether it is gone. Rejects when it has
   * to be tried again: a write that came between, or another pod under its name, of which the watch tells.
   */
  async reportPod(life: PodLife): Promise<boolean> {
    const { client } = this.#options
    const { namespace, name = '', uid = '', deletionTimestamp } = life.pod.metadata
    const status = life.status(client.clock.now())
    const value = statusPatch(uid, life.written, status)
    const where = { namespace, name }
    try {
      if (value !== undefined) {
        await client.patch(Pods, { ...where, subresource: 'status' }, { type: 'strategic', value })
        life.written = status
        if (isTerminalPhase(status.phase)) this.release(life.pod)
      }
      if (deletionTimestamp === undefined || !life.isOver) return false
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
      this.#say(STARTING)
      for (const { type, reason = '' } of status.conditions ?? [])
        this.#say(nodeIs(this.name, type === 'Ready' ? 'NodeReady' : reason.replace('Kubelet', 'Node')))
      this.#say(ALLOCATABLE_ENFORCED)
    } catch (error) {
      if (!isAlreadyExists(error)) throw error
      node = await client.get(Nodes, { name: this.name })
      this.#conditions = node.status.conditions ?? []
      await this.#report()
    }
    await describeDrivers(client, ownerOf(node))
    this.#conditions = nodeConditions(node.status.conditions ?? [], nowMs)
    this.#uid = node.metadata.uid ?? ''
    this.learn(node)
    // Spread over the period, so that the server has as much to do at every moment.
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
      // Whoever deletes a node must delete its kubelet as well, or start it again.
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

  #isTold({ type }: Note): boolean {
    const { events } = this.#options
    return events === 'all' || (events === 'warnings' && type === 'Warning')
  }

  #say(said: Note): void {
    if (this.#isTold(said)) this.#recorder.record({ kind: 'Node', name: this.name, apiVersion: 'v1' }, said)
  }
}

function ownerOf({ metadata: { name = '', uid = '' } }: Pick<Node, 'metadata'>): NodeOwner {
  return { apiVersion: 'v1', kind: 'Node', name, uid }
}

/** From 172.18.0.2 on. */
function nodeAddress(index: number): string {
  return formatIp({ family: 4, value: (parseIp('172.18.0.2')?.value ?? 0n) + BigInt(index) })
}

/** For clusters in which nobody gives ranges to nodes. */
function podCidrOf(index: number): string {
  return `10.${128 + (index >> 8)}.${index & 255}.0/24`
}
