/**
 * flannel's daemon on one node, with Kubernetes as its memory: the node's range comes from its Node, what others need to know
 * of it goes into annotations, and their annotations become ways to their pods. How a machine gets its end of the network and
 * the ways is its ground: Linux or Windows. Upstream's daemon may run on other nodes. Nothing is taken away when it ends: pods
 * go on talking, and the next one takes over what it finds.
 */
import { type Node, Nodes } from '#apis/core/v1.ts'
import type { ApiClient } from '#client/api-client.ts'
import { follow } from '#client/follow.ts'
import { writeFileAtomically } from '#lib/atomic-file.ts'
import { formatCidr, nthAddress } from '#lib/cidr.ts'
import type { Logger } from '#lib/log.ts'
import type { Random } from '#lib/random.ts'
import { startRounds } from '#lib/rounds.ts'

import { annotationNames, type Lease, leasesOf, ownAnnotations, type OwnLease, subnetEnv, subnetOf } from './lease.ts'
import type { NetConf } from './net-conf.ts'

/** What this node has of one family. */
export interface Family {
  readonly family: 4 | 6
  readonly network: string
  readonly publicIp: string
  readonly subnet: string
  readonly first: string
}

/** A machine's end of the network. All of it may be asked for again and again, and mends what somebody took away. */
export interface Ground {
  /** Makes it; what others are to know of it. `known` is the MAC that they know. */
  open(families: readonly Family[], known: (family: 4 | 6) => string | undefined): Promise<OwnLease['families']>
  masquerade(families: readonly Family[]): Promise<void>
  /** Ways to the pods of others, by the leases of all nodes. Whether anything was not as it should be. */
  reach(family: 4 | 6, leases: readonly Lease[]): Promise<boolean>
  /** The largest packet that gets through. */
  mtu(families: readonly Family[]): number
}

export interface DaemonOptions {
  readonly client: ApiClient
  readonly random: Random
  readonly log: Logger
  /** The name of the Node. */
  readonly node: string
  readonly conf: NetConf
  /** Where other nodes reach this one; a family that is not there has no network. */
  readonly publicIps: { readonly 4?: string; readonly 6?: string }
  /** Whether pods reach the world as their node. */
  readonly masquerades: boolean
  /** Where to tell CNI's plugin. Undefined: nobody asks. */
  readonly subnetFile?: string
  readonly annotationPrefix?: string
  /** Whether the Node is told that its network is there. */
  readonly setsCondition: boolean
  /** Whatever somebody took away is there again by then. */
  readonly mendMs?: number
}

const MEND_MS = 10_000

export interface Flannel {
  /** Resolves when pods of this node can be reached by others that know of it. */
  readonly ready: Promise<void>
}

/** Ends with `closing`. */
export function startDaemon(options: DaemonOptions, ground: Ground, closing: AsyncDisposableStack): Flannel {
  const daemon = new FlannelDaemon(options, ground)
  const stop = new AbortController()
  const { client, random, log, mendMs = MEND_MS } = options
  void follow(
    { client, kind: Nodes, random, signal: stop.signal },
    {
      replace: (nodes) => daemon.replace(nodes),
      change: ({ type, object }) => daemon.change(object, type === 'DELETED'),
      failed: (error) => log.error(error, 'What other nodes say could not be heard'),
    },
  )
  const onError = (error: unknown): void => log.error(error, 'The network could not be mended')
  const mending = startRounds({ clock: client.clock, periodMs: mendMs, onError }, () => daemon.mend())
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
  readonly #ground: Ground
  readonly #nameOf: (name: string) => string
  readonly #leases = new Map<string, readonly Lease[]>()
  readonly #isReady: () => void
  #own: Node | undefined
  #work: Promise<void> = Promise.resolve()
  /** Something has changed since the work that is under way began. */
  #isDue = false
  #isStopped = false
  /** What the file says. */
  #written = ''

  constructor(options: DaemonOptions, ground: Ground) {
    this.#options = options
    this.#ground = ground
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

  async mend(): Promise<void> {
    this.#trigger()
    await this.#work
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    await this.#work
  }

  /** One at a time, and once more when something came meanwhile. */
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
      this.#options.log.error(error, 'The network of this node is not as it should be; it is tried again'),
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
      families: await this.#ground.open(families, known),
    }
    if (this.#options.masquerades) await this.#ground.masquerade(families)
    await this.#publish(own, lease)
    await this.#writeFile(families)
    const all = [...this.#leases.values()].flat()
    for (const { family } of families) {
      const others = all.filter((one) => one.family === family)
      const hasChanged = await this.#ground.reach(family, others)
      if (hasChanged) this.#options.log.v(2)?.info('Ways to other nodes have changed', { family, nodes: others.length })
    }
    this.#isReady()
  }

  /** Those that are configured, that this node can be reached by and that it has a range of. */
  #families(own: Node): readonly Family[] {
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
    const said = own.metadata.annotations ?? {}
    const hasCondition = own.status?.conditions?.some(
      ({ type, status }) => type === 'NetworkUnavailable' && status === 'False',
    )
    const isSaid = Object.entries(annotations).every(([name, value]) => said[name] === value)
    if (isSaid && (hasCondition === true || !setsCondition)) return
    const now = new Date(client.clock.now()).toISOString().replace(/\.\d+Z$/, 'Z')
    const condition = { ...NETWORK_IS_UP, lastHeartbeatTime: now, lastTransitionTime: now }
    const value = { metadata: { annotations }, ...(setsCondition && { status: { conditions: [condition] } }) }
    const next = await client.patch(Nodes, { name: node, subresource: 'status' }, { type: 'strategic', value })
    this.#learn(next)
    log.v(1)?.info('This node is part of the network', { node, backendType: lease.backendType })
  }

  async #writeFile(families: readonly Family[]): Promise<void> {
    const { subnetFile, conf, masquerades } = this.#options
    if (subnetFile === undefined) return
    const text = subnetEnv({
      ...conf,
      subnets: families.map(({ subnet }) => subnet),
      mtu: this.#ground.mtu(families),
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
