/**
 * Cluster DNS of `up`: the DNS server in this process, behind Service `kube-dns` with the names and ports of upstream's
 * addon. It listens on the machine's pod network address and writes the Service's endpoints. A Service with a selector
 * belongs to another server, such as CoreDNS, and is left alone.
 */
import { type Node, Nodes, type Service, Services } from '#apis/core/v1.ts'
import { type EndpointSlice, EndpointSlices } from '#apis/discovery/v1.ts'
import type { NewObject } from '#apiserver/registry/resource.ts'
import { ApiClient } from '#client/api-client.ts'
import { follow } from '#client/reflector.ts'
import type { EnvironmentOptions } from '#control-plane/environment.ts'
import type { RunningServer } from '#control-plane/server.ts'
import { type DnsServer, startDns } from '#dns/start.ts'
import { stubsIn } from '#dns/stub-domains.ts'
import { createBackoff } from '#lib/backoff.ts'
import { sleep } from '#lib/clock.ts'
import { contains, formatIp, parseCidr } from '#lib/net/cidr.ts'
import type { ObjectEvent } from '#meta/watch.ts'
import { rule } from '#reconcile/controller.ts'

import { accountUser } from '../controllers.ts'
import { clusterAccess } from '../default-addons.ts'

export interface MachineDnsOptions extends Pick<EnvironmentOptions, 'clock' | 'random' | 'log' | 'readFile'> {
  /** The machine's node. */
  readonly node: string
  readonly serviceCidr: string
  readonly clusterDomain: string
  readonly resolvConf: string
  /** `corp.example=10.1.2.3` or `corp.example=10.1.2.3:5353`; repeat the domain for further servers. */
  readonly stubDomains?: readonly string[]
}

const NAMESPACE = 'kube-system'
const NAME = 'kube-dns'
const ACCOUNT = 'kube-dns'
const PORT = 53
const METRICS_PORT = 9153
/** As kubeadm. */
const NTH_ADDRESS = 10n
const RULES = [rule('', 'services namespaces', 'list watch'), rule('discovery.k8s.io', 'endpointslices', 'list watch')]
/** The link appears with the node's first pod CIDR. */
const RETRY = { baseMs: 50, factor: 1.5, capMs: 5000, jitter: 0.1 }

/** The Service's address; undefined if the range is too small. */
export function dnsAddress(serviceCidr: string): string | undefined {
  const block = parseCidr(serviceCidr.split(',')[0] ?? '')
  if (block === undefined) return undefined
  const ip = { family: block.family, value: block.base + NTH_ADDRESS }
  return contains(block, ip) ? formatIp(ip) : undefined
}

/** Returns the address for kubelets. It answers once the machine has a pod network address. Stops with `closing`. */
export async function startMachineDns(
  { server }: Pick<RunningServer, 'server'>,
  options: MachineDnsOptions,
  closing: AsyncDisposableStack,
): Promise<readonly string[]> {
  const address = dnsAddress(options.serviceCidr)
  if (address === undefined) return []
  const { writer } = server.registry
  const { clock, random, log } = options
  for (const [kind, object] of clusterAccess('hyperkube:kube-dns', ACCOUNT, RULES)) await writer.ensure(kind, object)
  // The Service may belong to another DNS server with another address.
  await writer
    .ensure(Services, serviceWith(address))
    .catch((error: unknown) => log.error(error, 'Failed to create service kube-dns'))
  const client = new ApiClient({ transport: server.clientAs(accountUser(ACCOUNT)), clock, userAgent: NAME })
  const stubDomains = stubsIn(options.stubDomains ?? [])
  const known = { client, domain: options.clusterDomain, own: [address], stubDomains }
  const dns = await startDns({ ...options, ...known }, closing)
  const stop = new AbortController()
  closing.defer(() => stop.abort())
  const admin = new ApiClient({ transport: server.clientAs(ADMIN), clock, userAgent: NAME })
  const dnsEndpoints = new DnsEndpoints(server, options)
  const around = { client: admin, random, signal: stop.signal }
  const failed = (error: unknown): void => log.error(error, 'Failed to set up cluster DNS')
  const listenAt = (gateway: string): void => {
    void listenOn(dns, gateway, options, stop.signal).then((ports) => dnsEndpoints.listens(ports), failed)
  }
  followNode({ ...around, node: options.node, failed }, listenAt)
  followService({ ...around, failed }, (service) => void dnsEndpoints.update(service).catch(failed))
  return [address]
}

/** Reads nodes and the Service. */
const ADMIN = { name: 'system:apiserver', uid: '', groups: ['system:masters', 'system:authenticated'], extra: {} }

interface WatchTools {
  readonly client: ApiClient
  readonly random: MachineDnsOptions['random']
  readonly signal: AbortSignal
  readonly failed: (error: unknown) => void
}

/** Calls back once with the machine's pod network address. */
function followNode(
  { node, failed, ...following }: WatchTools & { readonly node: string },
  found: (gateway: string) => void,
): void {
  let isFound = false
  const look = (object: Node | undefined): void => {
    const block = parseCidr(object?.spec.podCIDR ?? '')
    if (isFound || block === undefined) return
    isFound = true
    found(formatIp({ family: block.family, value: block.base + 1n }))
  }
  void follow(
    { ...following, kind: Nodes, selection: { fieldSelector: `metadata.name=${node}` } },
    { replace: ([first]) => look(first), change: ({ object }: ObjectEvent<Node>) => look(object), failed },
  )
}

function followService({ failed, ...following }: WatchTools, changed: (service: Service | undefined) => void): void {
  const selection = { namespace: NAMESPACE, fieldSelector: `metadata.name=${NAME}` }
  void follow(
    { ...following, kind: Services, selection },
    {
      replace: ([first]) => changed(first),
      change: ({ type, object }: ObjectEvent<Service>) => changed(type === 'DELETED' ? undefined : object),
      failed,
    },
  )
}

interface Ports {
  readonly address: string
  readonly udp: number
  readonly tcp: number
  readonly metrics: number
}

/** Retries until the address exists. If the port is taken, uses another one, which the endpoints contain. */
async function listenOn(
  dns: DnsServer,
  address: string,
  { clock, random, log }: MachineDnsOptions,
  signal: AbortSignal,
): Promise<Ports> {
  const backoff = createBackoff(random, RETRY)
  const attempt = async <T>(listen: (port: number) => Promise<T>, port: number): Promise<T> => {
    for (let wanted = port; ;) {
      try {
        return await listen(wanted)
      } catch (error) {
        const { code } = error as NodeJS.ErrnoException
        if (code === 'EADDRINUSE' && wanted !== 0) {
          log.info('Port is in use; serving DNS on another port', { address, port })
          wanted = 0
          continue
        }
        if (code !== 'EADDRNOTAVAIL') throw error
        await sleep(clock, backoff.next(), signal)
      }
    }
  }
  const { udpPort, tcpPort } = await attempt((port) => dns.listen(address, port), PORT)
  const { port } = await attempt((wanted) => dns.serveMetrics(address, wanted), METRICS_PORT)
  return { address, udp: udpPort, tcp: tcpPort, metrics: port }
}

/** Writes the endpoints while the Service is ours. */
class DnsEndpoints {
  readonly #writer: RunningServer['server']['registry']['writer']
  readonly #node: string
  #ports: Ports | undefined
  #service: Service | undefined

  constructor({ registry }: RunningServer['server'], { node }: MachineDnsOptions) {
    this.#writer = registry.writer
    this.#node = node
  }

  listens(ports: Ports): Promise<void> {
    this.#ports = ports
    return this.#write()
  }

  update(service: Service | undefined): Promise<void> {
    this.#service = service
    return this.#write()
  }

  async #write(): Promise<void> {
    const [ports, service] = [this.#ports, this.#service]
    if (service === undefined || ports === undefined) return
    const isOthers = Object.keys(service.spec.selector ?? {}).length > 0
    const where = { namespace: NAMESPACE, name: SLICE }
    if (isOthers) await this.#writer.delete(EndpointSlices, where)
    else {
      const wanted = sliceWith(ports, service, this.#node)
      await this.#writer.update(
        EndpointSlices,
        where,
        (found) => ({ ...found, ...wanted, metadata: { ...found.metadata, ...wanted.metadata } }),
        { creates: true },
      )
    }
  }
}

function serviceWith(address: string): NewObject<Service> {
  return {
    metadata: {
      name: NAME,
      namespace: NAMESPACE,
      annotations: { 'prometheus.io/port': String(METRICS_PORT), 'prometheus.io/scrape': 'true' },
      labels: { 'k8s-app': NAME, 'kubernetes.io/cluster-service': 'true', 'kubernetes.io/name': 'CoreDNS' },
    },
    spec: {
      clusterIP: address,
      ports: [
        { name: 'dns', port: PORT, protocol: 'UDP' },
        { name: 'dns-tcp', port: PORT, protocol: 'TCP' },
        { name: 'metrics', port: METRICS_PORT, protocol: 'TCP' },
      ],
    },
    status: {},
  } as unknown as NewObject<Service>
}

const SLICE = 'kube-dns-hyperkube'

function sliceWith({ address, udp, tcp, metrics }: Ports, service: Service, node: string): NewObject<EndpointSlice> {
  const { name = NAME, uid = '' } = service.metadata
  return {
    metadata: {
      name: SLICE,
      namespace: NAMESPACE,
      labels: { 'kubernetes.io/service-name': NAME, 'endpointslice.kubernetes.io/managed-by': 'hyperkube' },
      // Deleted with the Service.
      ownerReferences: [{ apiVersion: 'v1', kind: 'Service', name, uid }],
    },
    addressType: address.includes(':') ? 'IPv6' : 'IPv4',
    endpoints: [
      { addresses: [address], conditions: { ready: true, serving: true, terminating: false }, nodeName: node },
    ],
    ports: [
      { name: 'dns', port: udp, protocol: 'UDP' },
      { name: 'dns-tcp', port: tcp, protocol: 'TCP' },
      { name: 'metrics', port: metrics, protocol: 'TCP' },
    ],
  }
}
