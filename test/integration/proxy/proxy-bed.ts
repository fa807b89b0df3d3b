/** Starts a control plane and kube-proxy in the test process; kube-proxy's rules are in a network namespace. */
import { type Service, Services } from '#apis/core/v1.ts'
import { type EndpointSlice, EndpointSlices } from '#apis/discovery/v1.ts'
import { ApiClient, type Wanted } from '#client/api-client.ts'
import { realClock } from '#lib/clock.ts'
import { createRegistry } from '#lib/metrics/metrics.ts'
import { secureRandom } from '#lib/random.ts'
import type { IpFamily } from '#model/services.ts'
import type { Backend } from '#proxy/backend.ts'
import { createIptablesBackend } from '#proxy/iptables/backend.ts'
import { localByCidr } from '#proxy/local-detector.ts'
import { createNftBackend } from '#proxy/nftables/backend.ts'
import { createProxyMeters } from '#proxy/proxy-metrics.ts'
import { type ProxyOptions, startProxy } from '#proxy/proxy.ts'
import { errorLog, startControlPlane } from '#testing/control-plane.ts'

import { createNetwork, type Network } from './network-bed.ts'

export interface ProxyBed extends AsyncDisposable {
  readonly client: ApiClient
  /** Of who may do everything. */
  readonly kubeconfig: string
  readonly network: Network
  /** Starts kube-proxy, and resolves when its rules are there; disposing of it stops it. */
  proxy(options?: Partial<ProxyOptions>): Promise<AsyncDisposable>
  /** A Service `name` on port 80 over TCP and UDP, unless `spec` says otherwise. */
  service(name: string, spec?: Partial<Service['spec']>): Promise<Service>
  /** Applies an EndpointSlice with port 8080. */
  endpoints(service: string, endpoints: readonly BedEndpoint[], family?: IpFamily): Promise<void>
}

export interface BedEndpoint {
  readonly address: string
  readonly node?: string
  readonly conditions?: { readonly ready?: boolean; readonly serving?: boolean; readonly terminating?: boolean }
}

export const NODE = 'node-1'
export const TABLE = 'kube-proxy'
const PORTS = [
  { name: 'tcp', protocol: 'TCP', port: 80, targetPort: 8080 },
  { name: 'udp', protocol: 'UDP', port: 80, targetPort: 8080 },
]

const RANGES = { IPv4: '10.0.0.0/24', IPv6: 'fd00:10::/112' }
const PODS = { IPv4: '10.244.0.0/16', IPv6: 'fd00:244::/32' }
const ADMIN = { name: 'admin', uid: '', groups: ['system:masters'], extra: {} }
const PROXY = { name: 'system:kube-proxy', uid: '', groups: ['system:authenticated'], extra: {} }

export const MODES = ['nftables', 'iptables'] as const
export type Mode = (typeof MODES)[number]

export async function createProxyBed(mode: Mode, families: readonly IpFamily[] = ['IPv4']): Promise<ProxyBed> {
  const closing = new AsyncDisposableStack()
  const network = await createNetwork()
  closing.use(network)
  const settings = { 'service-cluster-ip-range': families.map((family) => RANGES[family]).join() }
  const plane = await startControlPlane({ settings })
  closing.defer(() => plane.stop())
  const clientOf = (user: typeof ADMIN): ApiClient =>
    new ApiClient({ transport: plane.running.server.clientAs(user), clock: realClock, userAgent: 'test' })
  const client = clientOf(ADMIN)
  return {
    client,
    kubeconfig: plane.kubeconfig,
    network,
    async proxy(options = {}) {
      const running = new AsyncDisposableStack()
      const backends = families.map((family) => backendIn(network.node.namespace.within, family, mode))
      const own = { client: clientOf(PROXY), backends, ...AROUND, meters: createProxyMeters(createRegistry()) }
      await startProxy({ ...own, ...options }, running).ready
      return running
    },
    service: (name, spec) =>
      client.create(Services, { metadata: { name, namespace: 'default' }, spec: { ports: PORTS, ...spec } }),
    async endpoints(service, endpoints, family = 'IPv4') {
      await client.apply(EndpointSlices, sliceOf(service, endpoints, family), { fieldManager: 'test', force: true })
    },
    [Symbol.asyncDispose]: () => closing.disposeAsync(),
  }
}

/** Soon enough for tests that wait for it. */
export const AROUND: Omit<ProxyOptions, 'client' | 'backends' | 'meters'> = {
  nodeName: NODE,
  clock: realClock,
  random: secureRandom,
  log: errorLog(),
  minSyncMs: 10,
  repairMs: 100,
}

/** Rules of a namespace. */
export function backendIn(within: readonly string[], family: IpFamily, mode: Mode): Backend {
  const shared = {
    family,
    masqueradeAll: false,
    detector: localByCidr(PODS[family]),
    nodePortIps: undefined,
    nodeIp: '',
  }
  if (mode === 'iptables') {
    const own = { masqueradeMark: '0x004000', localhostNodePorts: false, isTcpLiberal: false, hasRandomFully: true }
    return createIptablesBackend({ within, settings: { ...shared, ...own } })
  }
  const own = { table: TABLE, masqueradeMark: '0x00004000', serviceCidrs: [] }
  return createNftBackend({ clock: realClock, nft: { within }, settings: { ...shared, ...own } })
}

function sliceOf(service: string, endpoints: readonly BedEndpoint[], family: IpFamily): Wanted<EndpointSlice> {
  return {
    metadata: {
      name: `${service}-${family.toLowerCase()}`,
      namespace: 'default',
      labels: { 'kubernetes.io/service-name': service },
    },
    addressType: family,
    ports: PORTS.map(({ name, protocol, targetPort }) => ({ name, protocol, port: targetPort })),
    endpoints: endpoints.map(({ address, node, conditions = {} }) => ({
      addresses: [address],
      conditions,
      ...(node !== undefined && { nodeName: node }),
    })),
  }
}
