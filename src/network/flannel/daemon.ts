/**
 * flannel's daemon on one node, with the Kubernetes API as its store. It takes the node's range from its Node,
 * publishes annotations for others, and turns their annotations into routes. A `MachineNetwork` for Linux or Windows
 * does the work. It is compatible with upstream's daemon on other nodes. It removes nothing at its end: pods keep their
 * network, and the next start takes over.
 */
import { type Node, Nodes } from '#apis/core/v1.ts'
import type { ApiClient } from '#client/api-client.ts'
import { follow } from '#client/reflector.ts'
import { writeFileAtomically } from '#lib/files/atomic-file.ts'
import type { Logger } from '#lib/log/log.ts'
import { formatCidr, nthAddress } from '#lib/net/cidr.ts'
import { runPeriodically } from '#lib/periodic.ts'
import type { Random } from '#lib/random.ts'

import { annotationNames, type Lease, leasesOf, ownAnnotations, type OwnLease, subnetEnv, subnetOf } from './lease.ts'
import type { NetConf } from './net-conf.ts'

/** The node's range in one address family. */
export interface FamilyNetwork {
  readonly family: 4 | 6
  readonly network: string
  readonly publicIp: string
  readonly subnet: string
  readonly first: string
}

/** The network of one machine. All methods are idempotent and repair what is missing. */
export interface MachineNetwork {
  /** Sets up the network; returns the data for the annotations. `known` is the published MAC. */
  open(families: readonly FamilyNetwork[], known: (family: 4 | 6) => string | undefined): Promise<OwnLease['families']>
  masquerade(families: readonly FamilyNetwork[]): Promise<void>
  /** Sets up routes to the pods of other nodes from all leases. Returns whether anything changed. */
  reach(family: 4 | 6, leases: readonly Lease[]): Promise<boolean>
  /** The MTU for pods. */
  mtu(families: readonly FamilyNetwork[]): number
}

export interface DaemonOptions {
  readonly client: ApiClient
  readonly random: Random
  readonly log: Logger
  /** The name of the Node. */
  readonly node: string
  readonly conf: NetConf
  /** The addresses for other nodes; a missing family has no network. */
  readonly publicIps: { readonly 4?: string; readonly 6?: string }
  /** Whether traffic of pods to the outside is masqueraded. */
  readonly masquerades: boolean
  /** The file for CNI's flannel plugin. Undefined: none. */
  readonly subnetFile?: string
  readonly annotationPrefix?: string
  /** Whether to set the NetworkUnavailable condition of the Node. */
  readonly setsCondition: boolean
  /** The period of repairs. */
  readonly repairMs?: number
}

const MEND_MS = 10_000

export interface Flannel {
  /** Resolves when other nodes can reach this node's pods. */
  readonly ready: Promise<void>
}

/** Stops with `closing`. */
export function startDaemon(
  options: DaemonOptions,
  machineNetwork: MachineNetwork,
  closing: AsyncDisposableStack,
): Flannel {
  const daemon = new FlannelDaemon(options, machineNetwork)
  const stop = new AbortController()
  const { client, random, log, repairMs: mendMs = MEND_MS } = options
  void follow(
    { client, kind: Nodes, random, signal: stop.signal },
    {
      replace: (nodes) => daemon.replace(nodes),
      change: ({ type, object }) => daemon.change(object, type === 'DELETED'),
      failed: (error) => log.error(error, 'Failed to watch nodes'),
    },
  )
  const onError = (error: unknown): void => log.error(error, 'Failed to repair the pod network')
  const mending = runPeriodically({ clock: client.clock, periodMs: mendMs, onError }, () => daemon.repair())
  closing.defer(async () => {
    stop.abort()
    await mending.stop()
    await daemon.stop()
  })
  return { ready: daemon.ready }
}

class FlannelDaemon {
  readonly ready: Promise<void>
  readonly #options: DaemonOptions
  readonly #machineNetwork: MachineNetwork
  readonly #nameOf: (name: string) => string
  readonly #leases = new Map<string, readonly Lease[]>()
  readonly #isReady: () => void
  #own: Node | undefined
  #work: Promise<void> = Promise.resolve()
  /** A change arrived during the current run. */
  #isDue = false
  #isStopped = false
  /** The file's content. */
  #written = ''

  constructor(options: DaemonOptions, machineNetwork: MachineNetwork) {
    this.#options = options
    this.#machineNetwork = machineNetwork
    this.#nameOf = annotationNames(options.annotationPrefix)
    const { promise, resolve } = Promise.withResolvers<void>()
    this.ready = promise
    this.#isReady = resolve
  }

  replace(nodes: readonly Node[]): void {
    this.#leases.clear()
    this.#own = undefined
    for (const node of nodes) this.#learn(node)
    this.#trigger()
  }

  change(node: Node, isGone: boolean): void {
    const { name = '' } = node.metadata
    const before = JSON.stringify([this.#leases.get(name), name === this.#options.node && this.#own?.spec.podCIDRs])
    if (isGone) this.#forget(name)
    else this.#learn(node)
    const after = JSON.stringify([this.#leases.get(name), name === this.#options.node && this.#own?.spec.podCIDRs])
    if (before !== after) this.#trigger()
  }

  #learn(node: Node): void {
    const { name = '' } = node.metadata
    if (name === this.#options.node) this.#own = node
    this.#leases.set(name, leasesOf(node, this.#nameOf))
  }

  #forget(name: string): void {
    this.#leases.delete(name)
    if (name === this.#options.node) this.#own = undefined
  }

  async repair(): Promise<void> {
    this.#trigger()
    await this.#work
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    await this.#work
  }

  /** One run at a time, and another one if a change arrived meanwhile. */
  #trigger(): void {
    if (this.#isDue || this.#isStopped) return
    this.#isDue = true
    this.#work = this.#after(this.#work)
  }

  async #after(before: Promise<void>): Promise<void> {
    await before
    this.#isDue = false
    if (this.#isStopped) return
    await this.#reconcile().catch((error: unknown) =>
      this.#options.log.error(error, 'Failed to set up the pod network; retrying'),
    )
  }

  async #reconcile(): Promise<void> {
    const own = this.#own
    if (own === undefined) return
    const families = this.#families(own)
    if (families.length === 0) return
    const known = (family: 4 | 6): string | undefined =>
      this.#leases.get(this.#options.node)?.find((one) => one.family === family)?.mac
    const lease: OwnLease = {
      backendType: this.#options.conf.backend.type,
      families: await this.#machineNetwork.open(families, known),
    }
    if (this.#options.masquerades) await this.#machineNetwork.masquerade(families)
    await this.#publish(own, lease)
    await this.#writeFile(families)
    const all = [...this.#leases.values()].flat()
    for (const { family } of families) {
      const others = all.filter((one) => one.family === family)
      const hasChanged = await this.#machineNetwork.reach(family, others)
      if (hasChanged)
        this.#options.log.v(2)?.info('Updated routes to pods of other nodes', { family, nodes: others.length })
    }
    this.#isReady()
  }

  /** The families that are configured, have a public address and have a range on this node. */
  #families(own: Node): readonly FamilyNetwork[] {
    const { conf, publicIps } = this.#options
    const networks = { 4: conf.network, 6: conf.ipv6Network }
    return ([4, 6] as const).flatMap((family) => {
      const [network, publicIp, subnet] = [networks[family], publicIps[family], subnetOf(own.spec, family)]
      if (network === undefined || publicIp === undefined || subnet === undefined) return []
      return [{ family, network, publicIp, subnet: formatCidr(subnet), first: nthAddress(subnet, 0) }]
    })
  }

  async #publish(own: Node, lease: OwnLease): Promise<void> {
    const { client, node, setsCondition, log } = this.#options
    const annotations = ownAnnotations(lease, this.#nameOf)
    const annotationsFound = own.metadata.annotations ?? {}
    const hasCondition = own.status?.conditions?.some(
      ({ type, status }) => type === 'NetworkUnavailable' && status === 'False',
    )
    const isPublished = Object.entries(annotations).every(([name, value]) => annotationsFound[name] === value)
    if (isPublished && (hasCondition === true || !setsCondition)) return
    const now = new Date(client.clock.now()).toISOString().replace(/\.\d+Z$/, 'Z')
    const condition = { ...NETWORK_IS_UP, lastHeartbeatTime: now, lastTransitionTime: now }
    const value = { metadata: { annotations }, ...(setsCondition && { status: { conditions: [condition] } }) }
    const next = await client.patch(Nodes, { name: node, subresource: 'status' }, { type: 'strategic', value })
    this.#learn(next)
    log.v(1)?.info('Node joined the pod network', { node, backendType: lease.backendType })
  }

  async #writeFile(families: readonly FamilyNetwork[]): Promise<void> {
    const { subnetFile, conf, masquerades } = this.#options
    if (subnetFile === undefined) return
    const text = subnetEnv({
      ...conf,
      subnets: families.map(({ subnet }) => subnet),
      mtu: this.#machineNetwork.mtu(families),
      masquerades,
    })
    if (text === this.#written) return
    await writeFileAtomically(subnetFile, text, { mode: 0o644 })
    this.#written = text
  }
}

const NETWORK_IS_UP = {
  type: 'NetworkUnavailable',
  status: 'False',
  reason: 'FlannelIsUp',
  message: 'Flannel is running on this node',
}
