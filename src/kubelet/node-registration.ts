/**
 * A node as the API server knows it: registered, its status reported when something has changed and now and then when
 * nothing has, its lease renewed. When each is due is up to whoever runs the node.
 */
import { Leases } from '#apis/coordination/v1.ts'
import { type Node, type NodeCondition, Nodes, type NodeStatus } from '#apis/core/v1.ts'
import type { ApiClient } from '#client/api-client.ts'
import { semanticEqual } from '#meta/object.ts'
import { isAlreadyExists, isConflict, isNotFound } from '#meta/status.ts'
import { microTimeOf } from '#meta/time.ts'

import { describeDrivers, type NodeOwner } from './csi-node.ts'
import { nodeIs, type Note, STARTING } from './kubelet-notes.ts'
import type { NodeStartup } from './metrics/node-startup.ts'
import { type NodeFacts, nodeOf, nodeStatusOf } from './node-status.ts'

export interface RegistrationOptions {
  /** As `system:node:<name>`. */
  readonly client: ApiClient
  readonly name: string
  /** As they are now. */
  readonly facts: () => NodeFacts
  readonly taints?: NonNullable<Node['spec']['taints']>
  readonly providerId?: string
  /** What is said of the machine when it begins. */
  readonly warnings?: readonly Note[]
  /** Default: 40. */
  readonly leaseSeconds?: number
  /** However little has changed, so often all is said. Default: every five minutes. */
  readonly reportMs?: number
  readonly say: (note: Note) => void
  /** Told how far the node has come. Default: nobody counts. */
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

  /** Whether it has said that it is ready. */
  get isReady(): boolean {
    return this.#conditions.some(({ type, status }) => type === 'Ready' && status === 'True')
  }

  /** Returns the node as the server has it. One that is there already is taken over, and its labels are put right. */
  async register(): Promise<Node> {
    const { client, name, facts, taints = [], providerId: providerID = '', warnings = [], say, startup } = this.#options
    startup?.registering()
    say(STARTING)
    for (const note of warnings) say(note)
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
    this.#announce(there.status.conditions ?? [])
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

  /** Writes the status if there is something to say; `isForced`: though there is not. */
  async report(isForced = false): Promise<void> {
    const { client, name, facts } = this.#options
    const nowMs = client.clock.now()
    const status = nodeStatusOf(facts(), this.#conditions, nowMs)
    const isDue = isForced || nowMs - this.#reportedMs >= (this.#options.reportMs ?? REPORT_MS)
    if (!isDue && this.#isSaid(status) && (await this.#isBelieved(status))) return
    const { metadata } = await client.patch(
      Nodes,
      { name, subresource: 'status' },
      { type: 'strategic', value: { status: patchOf(status, facts().cloud !== undefined) } },
    )
    this.#uid = metadata.uid ?? ''
    this.#announce(status.conditions ?? [])
    this.#conditions = status.conditions ?? []
    if (this.isReady) this.#options.startup?.ready()
    this.#reported = status
    this.#reportedMs = nowMs
  }

  #isSaid(status: NodeStatus): boolean {
    return this.#reported !== undefined && semanticEqual(timeless(status), timeless(this.#reported))
  }

  /** Of a node that was silent for too long others say that nobody knows how it is: it must speak when it is back. */
  async #isBelieved({ conditions }: NodeStatus): Promise<boolean> {
    const { client, name } = this.#options
    const { status } = await client.get(Nodes, { name }, { resourceVersion: '0' })
    const said = new Map(status?.conditions?.map((one) => [one.type, one.status]))
    return (conditions ?? []).every((one) => said.get(one.type) === one.status)
  }

  /** What has changed of its conditions is told as events. */
  #announce(now: readonly NodeCondition[]): void {
    for (const { type, status, reason = '' } of now) {
      const before = this.#conditions.find((condition) => condition.type === type)
      // Who was never ready has not ceased to be.
      const isBeginning = before === undefined && type === 'Ready' && status !== 'True'
      if (before?.status === status || isBeginning) continue
      const said =
        type === 'Ready' ? (status === 'True' ? 'NodeReady' : 'NodeNotReady') : reason.replace('Kubelet', 'Node')
      this.#options.say(nodeIs(this.#options.name, said))
    }
  }

  /** Drivers of volumes register themselves in it; a node without it is not complete. */
  describeDrivers(): Promise<void> {
    return describeDrivers(this.#options.client, this.#owner)
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

/** Addresses are merged by their type, of which a node may have two: they are to be all that there are. */
function patchOf(status: NodeStatus, isCloud: boolean): object {
  // Where the node is was said once, and since then the cloud knows better.
  const { addresses: _, ...others } = status
  if (isCloud) return others
  return { ...status, addresses: [...(status.addresses ?? []), { $patch: 'replace' }] }
}

/** Without what is new every time. */
function timeless(status: NodeStatus): NodeStatus {
  const conditions = (status.conditions ?? []).map((condition) => ({ ...condition, lastHeartbeatTime: null }))
  return { ...status, conditions }
}
