/**
 * The service `kubernetes`: how pods reach the API server. Its address is the first of the service range; its endpoints
 * are where this server listens. Put in place once the server knows its port, and brought up to date at every start.
 */
import { Endpoints, Services } from '#apis/core/v1.ts'
import { EndpointSlices } from '#apis/discovery/v1.ts'
import type { Kind } from '#apis/kinds.ts'
import { type ServiceCIDR, ServiceCIDRs } from '#apis/networking/v1.ts'
import { formatIp, parseCidr } from '#lib/cidr.ts'
import { deepCopy, type KubeObject } from '#meta/object.ts'
import { timeOf } from '#meta/time.ts'

import type { Registry } from '../registry/registry.ts'
import { ensure, systemRequest } from './ensure.ts'

export interface KubernetesServiceOptions {
  /** `--service-cluster-ip-range`; only the first block counts here. */
  readonly serviceCidr: string
  /** `--advertise-address`; undefined when there is none that pods could reach. */
  readonly advertiseAddress: string | undefined
  readonly port: number
}

const NAME = 'kubernetes'
const NAMESPACE = 'default'

export async function ensureKubernetesService(registry: Registry, options: KubernetesServiceOptions): Promise<void> {
  await ensureRange(registry, options.serviceCidr)
  const [block = ''] = options.serviceCidr.split(',')
  const range = parseCidr(block)
  if (range === undefined) throw new Error(`"${block}" is not a block of addresses; correct --service-cluster-ip-range`)
  const clusterIP = formatIp({ family: range.family, value: range.base + 1n })
  await ensure(registry, Services, {
    metadata: { name: NAME, namespace: NAMESPACE, labels: { component: 'apiserver', provider: 'kubernetes' } },
    spec: {
      type: 'ClusterIP',
      clusterIP,
      clusterIPs: [clusterIP],
      ipFamilies: [`IPv${range.family}`],
      ipFamilyPolicy: 'SingleStack',
      sessionAffinity: 'None',
      ports: [{ name: 'https', protocol: 'TCP', port: 443, targetPort: options.port }],
    },
    status: { loadBalancer: {} },
  })
  if (options.advertiseAddress !== undefined) await publishEndpoints(registry, options.advertiseAddress, options.port)
}

async function ensureRange(registry: Registry, cidrs: string): Promise<void> {
  const created = await ensure(registry, ServiceCIDRs, {
    metadata: { name: NAME },
    spec: { cidrs: cidrs.split(',') },
    status: {},
  })
  if (!created) return
  const request = { ...systemRequest(ServiceCIDRs, ''), subresource: 'status' }
  const ready = {
    type: 'Ready',
    status: 'True' as const,
    reason: '',
    message: 'Kubernetes default Service CIDR is ready',
    lastTransitionTime: timeOf(registry.services.clock.now()),
  }
  await registry.storeOf(ServiceCIDRs)?.update(request, NAME, (live) => {
    const next = deepCopy(live as ServiceCIDR)
    next.status = { conditions: [ready] }
    return next
  })
}

async function publishEndpoints(registry: Registry, ip: string, port: number): Promise<void> {
  const ports = [{ name: 'https', port, protocol: 'TCP' }]
  await put(registry, Endpoints, {
    metadata: { name: NAME, namespace: NAMESPACE, labels: { 'endpointslice.kubernetes.io/skip-mirror': 'true' } },
    subsets: [{ addresses: [{ ip }], ports }],
  })
  await put(registry, EndpointSlices, {
    metadata: { name: NAME, namespace: NAMESPACE, labels: { 'kubernetes.io/service-name': NAME } },
    addressType: ip.includes(':') ? 'IPv6' : 'IPv4',
    endpoints: [{ addresses: [ip], conditions: { ready: true } }],
    ports,
  })
}

/** Creates the object, or gives the one that is there this content. */
async function put<T extends KubeObject>(
  registry: Registry,
  kind: Kind<T>,
  object: Omit<T, 'kind' | 'apiVersion'>,
): Promise<void> {
  if (await ensure(registry, kind, object)) return
  const { name = '', namespace = '' } = object.metadata
  await registry.storeOf(kind)?.update(systemRequest(kind, namespace), name, (live) => ({
    ...deepCopy(live),
    ...deepCopy(object),
    metadata: live.metadata,
  }))
}
