/**
 * flannel's daemon on one node, with Kubernetes as its memory: the node's range comes from its Node, what others need to know
 * of it goes into annotations, and their annotations become links, routes and rules. Upstream's daemon may run on other nodes.
 * Nothing is taken away when it ends: pods go on talking, and the next one takes over what it finds.
 */
import { type Node, Nodes } from '#apis/core/v1.ts'
import type { ApiClient } from '#client/api-client.ts'
import { follow } from '#client/follow.ts'
import { writeFileAtomically } from '#lib/atomic-file.ts'
import { formatCidr, nthAddress } from '#lib/cidr.ts'
import type { IpRoute } from '#lib/iproute.ts'
import type { Logger } from '#lib/log.ts'
import type { Random } from '#lib/random.ts'
import { startRounds } from '#lib/rounds.ts'

import { annotationNames, type Lease, leasesOf, ownAnnotations, type OwnLease, subnetEnv, subnetOf } from './lease.ts'
import { type ExternalInterface, vxlanMtu } from './link.ts'
import type { NftTable } from './masquerade.ts'
import type { NetConf } from './net-conf.ts'
import { ensureMasquerade, ensurePaths, ensureVxlan } from './node-links.ts'

export interface FlannelOptions {
  readonly client: ApiClient
  readonly random: Random
  readonly log: Logger
  /** The name of the Node. */
  readonly node: string
  readonly conf: NetConf
  readonly ip: IpRoute
  readonly external: ExternalInterface
  /** Where other nodes reach this one; a family that is not there has no network. */
  readonly publicIps: { readonly 4?: string; readonly 6?: string }
  /** Default: flannel's own, `flannel.1` and `flannel-v6.1`. */
  readonly overlay?: (family: 4 | 6) => string
  /** Default: flannel's own, `flannel-ipv4` and `flannel-ipv6`. */
  readonly table?: (family: 4 | 6) => NftTable
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
export function startFlannel(options: FlannelOptions, closing: AsyncDisposableStack): Flannel {
  const daemon = new FlannelDaemon(options)
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
  readonly #options: FlannelOptions
  readonly #nameOf: (name: string) => string
  readonly #leases = new Map<string, readonly Lease[]>()
  readonly #isReady: () => void
  #own: Node | undefined
  #work: Promise<void> = Promise.resolve()
  /** Something has changed since the work that is under way began. */
  #isDue = false
  #isStopped = false
  /** What the file says, and the ranges that the rules are for. */
  #written = ''
  #ruled = ''

  constructor(options: FlannelOptions) {
    this.#options = options
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
    const lease: OwnLease = { backendType: this.#options.conf.backend.type, families: await this.#openLinks(families) }
    await this.#masquerade(families)
    await this.#publish(own, lease)
    await this.#writeFile(families)
    const all = [...this.#leases.values()].flat()
    for (const { family } of families) {
      const others = all.filter((one) => one.family === family)
      const hasChanged = await ensurePaths(this.#options.ip, this.#around(family), family, others)
      if (hasChanged) this.#options.log.v(2)?.info('Ways to other nodes have changed', { family, nodes: others.length })
    }
    this.#isReady()
  }

  #around(family: 4 | 6): Parameters<typeof ensurePaths>[1] {
    const { node, conf, external } = this.#options
    return { node, backend: conf.backend, external, overlay: this.#overlay(family) }
  }

  #overlay(family: 4 | 6): string {
    const { conf, overlay } = this.#options
    const vni = conf.backend.type === 'vxlan' ? conf.backend.vni : 0
    return overlay?.(family) ?? (family === 4 ? `flannel.${vni}` : `flannel-v6.${vni}`)
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

  async #openLinks(families: readonly Family[]): Promise<OwnLease['families']> {
    const { conf, ip, external, node } = this.#options
    const { backend } = conf
    if (backend.type !== 'vxlan') return families
    return Promise.all(
      families.map(async ({ family, publicIp, first }) => {
        const known = this.#leases.get(node)?.find((one) => one.family === family)?.mac
        const wish = { name: this.#overlay(family), family, backend, external, local: publicIp, address: first }
        const mac = await ensureVxlan(ip, { ...wish, mac: known ?? randomMac(this.#options.random) })
        return { family, publicIp, data: { vni: backend.vni, mac } }
      }),
    )
  }

  async #masquerade(families: readonly Family[]): Promise<void> {
    const { masquerades, table = flannelTable } = this.#options
    if (!masquerades) return
    const ruled = JSON.stringify(families)
    for (const { family, network, subnet } of families) {
      await ensureMasquerade({ table: table(family), family, network, subnet }, ruled !== this.#ruled)
    }
    this.#ruled = ruled
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
    const { subnetFile, conf, masquerades, external } = this.#options
    if (subnetFile === undefined) return
    const { backend } = conf
    const sizes = families.map(({ family }) =>
      backend.type === 'vxlan' ? vxlanMtu({ family, backend, external }) : (backend.mtu ?? external.mtu),
    )
    const text = subnetEnv({
      ...conf,
      subnets: families.map(({ subnet }) => subnet),
      mtu: Math.min(...sizes),
      masquerades,
    })
    if (text === this.#written) return
    await writeFileAtomically(subnetFile, text, { mode: 0o644 })
    this.#written = text
  }
}

interface Family {
  readonly family: 4 | 6
  readonly network: string
  readonly publicIp: string
  readonly subnet: string
  readonly first: string
}

const NETWORK_IS_UP = {
  type: 'NetworkUnavailable',
  status: 'False',
  reason: 'FlannelIsUp',
  message: 'Flannel is running on this node',
}

const flannelTable = (family: 4 | 6): NftTable => ({
  family: family === 4 ? 'ip' : 'ip6',
  name: `flannel-ipv${family}`,
})

/** Of nobody's range: locally administered, of one station. */
function randomMac(random: Random): string {
  const bytes = random.bytes(6)
  bytes[0] = ((bytes[0] ?? 0) & 0xfc) | 0x02
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join(':')
}
