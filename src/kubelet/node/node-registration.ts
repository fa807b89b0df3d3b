/** Registers a node, reports its status on change or periodically, and renews its lease. The caller decides when. */
import { Leases } from '#apis/coordination/v1.ts'
import { type Node, type NodeCondition, Nodes, type NodeStatus } from '#apis/core/v1.ts'
import type { ApiClient } from '#client/api-client.ts'
import { semanticEqual } from '#meta/object.ts'
import { isAlreadyExists, isConflict, isNotFound } from '#meta/status.ts'
import { microTimeOf } from '#meta/time.ts'

import type { NodeStartup } from '../metrics/node-startup.ts'
import { type EventSpec, nodeIs, STARTING } from '../pod/events.ts'
import { createCsiNode, type NodeOwner } from './csi-node.ts'
import { type NodeFacts, nodeOf, nodeStatusOf } from './node-status.ts'

export interface RegistrationOptions {
  /** As `system:node:<name>`. */
  readonly client: ApiClient
  readonly name: string
  /** The current facts. */
  readonly facts: () => NodeFacts
  readonly taints?: NonNullable<Node['spec']['taints']>
  readonly providerId?: string
  /** Events about the machine recorded at start. */
  readonly warnings?: readonly EventSpec[]
  /** Default: 40. */
  readonly leaseSeconds?: number
  /** Report interval when nothing has changed. Default: five minutes. */
  readonly statusReportMs?: number
  readonly recordEvent: (event: EventSpec) => void
  /** Records startup phases as metrics. Default: none. */
  readonly startup?: NodeStartup
}

const NAMESPACE = 'kube-node-lease'
const LEASE_SECONDS = 40
const REPORT_MS = 300_000

export class NodeRegistration {
  readonly #options: RegistrationOptions
  #conditions: readonly NodeCondition[] = []
  #reported: NodeStatus | undefined
  #reportedMs = -Infinity
  #uid = ''
  #leaseVersion: string | undefined

  constructor(options: RegistrationOptions) {
    this.#options = options
  }

  get uid(): string {
    return this.#uid
  }

  /** True once the reported Ready condition is True. */
  get isReady(): boolean {
    return this.#conditions.some(({ type, status }) => type === 'Ready' && status === 'True')
  }

  /** Returns the node from the server. An existing node is taken over and its labels are reconciled. */
  async register(): Promise<Node> {
    const {
      client,
      name,
      facts,
      taints = [],
      providerId: providerID = '',
      warnings = [],
      recordEvent,
      startup,
    } = this.#options
    startup?.registering()
    recordEvent(STARTING)
    for (const event of warnings) recordEvent(event)
    const wanted = nodeOf(facts(), client.clock.now())
    const spec = { ...(taints.length > 0 && { taints }), ...(providerID !== '' && { providerID }) }
    const node = { ...wanted, spec }
    let isNew = true
    const there = await client.create(Nodes, node).catch(async (error: unknown) => {
      if (!isAlreadyExists(error)) throw error
      isNew = false
      return this.#reconcile(await client.get(Nodes, { name }), wanted.metadata)
    })
    startup?.registered(isNew)
    this.#uid = there.metadata.uid ?? ''
    this.#recordChanges(there.status.conditions ?? [])
    this.#conditions = there.status.conditions ?? []
    return there
  }

  async #reconcile(there: Node, { labels, annotations }: Node['metadata']): Promise<Node> {
    const differ = (mine: object | undefined, theirs: Readonly<Record<string, string>> | undefined): boolean =>
      Object.entries(mine ?? {}).some(([key, value]) => theirs?.[key] !== value)
    const { client, name } = this.#options
    if (!differ(labels, there.metadata.labels) && !differ(annotations, there.metadata.annotations)) return there
    const value = { metadata: { labels, annotations } }
    return client.patch(Nodes, { name }, { type: 'strategic', value })
  }

  /** Patches the status if it has changed; `isForced`: always. */
  async report(isForced = false): Promise<void> {
    const { client, name, facts } = this.#options
    const nowMs = client.clock.now()
    const status = nodeStatusOf(facts(), this.#conditions, nowMs)
    const isDue = isForced || nowMs - this.#reportedMs >= (this.#options.statusReportMs ?? REPORT_MS)
    if (!isDue && this.#isReported(status) && (await this.#isOnServer(status))) return
    const { metadata } = await client.patch(
      Nodes,
      { name, subresource: 'status' },
      { type: 'strategic', value: { status: patchOf(status, facts().cloud !== undefined) } },
    )
    this.#uid = metadata.uid ?? ''
    this.#recordChanges(status.conditions ?? [])
    this.#conditions = status.conditions ?? []
    if (this.isReady) this.#options.startup?.ready()
    this.#reported = status
    this.#reportedMs = nowMs
  }

  #isReported(status: NodeStatus): boolean {
    return this.#reported !== undefined && semanticEqual(timeless(status), timeless(this.#reported))
  }

  /** False when the server has other conditions: the node lifecycle controller sets Unknown after missed heartbeats. */
  async #isOnServer({ conditions }: NodeStatus): Promise<boolean> {
    const { client, name } = this.#options
    const { status } = await client.get(Nodes, { name }, { resourceVersion: '0' })
    const onServer = new Map(status?.conditions?.map((one) => [one.type, one.status]))
    return (conditions ?? []).every((one) => onServer.get(one.type) === one.status)
  }

  /** Records an event for every changed condition. */
  #recordChanges(now: readonly NodeCondition[]): void {
    for (const { type, status, reason = '' } of now) {
      const before = this.#conditions.find((condition) => condition.type === type)
      // A node that was never ready has not become NotReady.
      const isBeginning = before === undefined && type === 'Ready' && status !== 'True'
      if (before?.status === status || isBeginning) continue
      const eventReason =
        type === 'Ready' ? (status === 'True' ? 'NodeReady' : 'NodeNotReady') : reason.replace('Kubelet', 'Node')
      this.#options.recordEvent(nodeIs(this.#options.name, eventReason))
    }
  }

  /** Creates the CSINode, which CSI drivers need. */
  createCsiNode(): Promise<void> {
    return createCsiNode(this.#options.client, this.#owner)
  }

  async renew(): Promise<void> {
    const { client, name, leaseSeconds: leaseDurationSeconds = LEASE_SECONDS } = this.#options
    const spec = {
      holderIdentity: name,
      leaseDurationSeconds,
      renewTime: microTimeOf(client.clock.now()),
    }
    const metadata = { name, namespace: NAMESPACE, ownerReferences: [this.#owner] }
    try {
      const lease =
        this.#leaseVersion === undefined
          ? await client.create(Leases, { metadata, spec })
          : await client.update(Leases, { metadata: { ...metadata, resourceVersion: this.#leaseVersion }, spec })
      this.#leaseVersion = lease.metadata.resourceVersion
    } catch (error) {
      if (isNotFound(error)) this.#leaseVersion = undefined
      else if (isAlreadyExists(error) || isConflict(error))
        this.#leaseVersion = (await client.get(Leases, metadata)).metadata.resourceVersion
      else throw error
    }
  }

  get #owner(): NodeOwner {
    return { apiVersion: 'v1', kind: 'Node', name: this.#options.name, uid: this.#uid }
  }
}

/** A strategic merge would merge addresses by type, and a node may have two of a type, so the list is replaced. */
function patchOf(status: NodeStatus, isCloud: boolean): object {
  // The cloud controller owns the addresses after registration.
  const { addresses: _, ...others } = status
  if (isCloud) return others
  return { ...status, addresses: [...(status.addresses ?? []), { $patch: 'replace' }] }
}

/** The status without heartbeat times. */
function timeless(status: NodeStatus): NodeStatus {
  const conditions = (status.conditions ?? []).map((condition) => ({ ...condition, lastHeartbeatTime: null }))
  return { ...status, conditions }
}
