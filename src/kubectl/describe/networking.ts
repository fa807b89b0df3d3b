/** Describes services, endpoints, ingresses and their classes, and addresses. */
import type { Endpoints, LoadBalancerIngress, Service, ServicePort } from '#apis/core/v1.ts'
import type { Endpoint, EndpointSlice } from '#apis/discovery/v1.ts'
import type { IPAddress, Ingress, IngressBackend, IngressClass, ServiceCIDR } from '#apis/networking/v1.ts'
import { labelsText } from '#meta/labels.ts'

import { type DescribedKinds, describes, describesWithoutEvents } from './describer.ts'
import { policyRows } from './network-policy.ts'
import type { RelatedObjects } from './related.ts'
import { cells, nested, ifSet, orEmpty, type Part, tableOf, unlessEmpty } from './rows.ts'
import { annotationRow, clusterHead, head, labelRow, orNone, timedConditionRow } from './sections.ts'

export const NETWORKING_KINDS: DescribedKinds = {
  Service: describes('v1/services', serviceRows),
  Endpoints: describes<Endpoints>('v1/endpoints', (endpoints) => [
    ...head(endpoints),
    ['Subsets', (endpoints.subsets ?? []).flatMap(subsetRows)],
  ]),
  'EndpointSlice.discovery.k8s.io': describes('discovery.k8s.io/v1/endpointslices', sliceRows),
  'Ingress.networking.k8s.io': describes('networking.k8s.io/v1/ingresses', ingressRows),
  'IngressClass.networking.k8s.io': describes<IngressClass>('networking.k8s.io/v1/ingressclasses', (one) => [
    ...clusterHead(one),
    ['Controller', orEmpty(one.spec?.controller)],
    ['Parameters', parameterRows(one.spec?.parameters)],
  ]),
  'ServiceCIDR.networking.k8s.io': describes<ServiceCIDR>('networking.k8s.io/v1/servicecidrs', (cidr) => [
    ...clusterHead(cidr),
    ['CIDRs', (cidr.spec?.cidrs ?? []).join(', ')],
    (cidr.status?.conditions ?? []).length > 0 ? 'Status:' : undefined,
    timedConditionRow(cidr.status?.conditions),
  ]),
  'IPAddress.networking.k8s.io': describes<IPAddress>('networking.k8s.io/v1/ipaddresses', (address) => [
    ...clusterHead(address),
    ['Parent Reference', parentRows(address.spec?.parentRef)],
  ]),
  'NetworkPolicy.networking.k8s.io': describesWithoutEvents('networking.k8s.io/v1/networkpolicies', policyRows),
}

function parameterRows(parameters: NonNullable<IngressClass['spec']>['parameters']): Part[] | undefined {
  return (
    parameters && [
      ['APIGroup', parameters.apiGroup],
      ['Kind', parameters.kind],
      ['Name', parameters.name],
    ]
  )
}

function parentRows(parent: NonNullable<IPAddress['spec']>['parentRef']): Part[] | undefined {
  return (
    parent && [
      ['Group', orEmpty(parent.group)],
      ['Resource', parent.resource],
      ['Namespace', orEmpty(parent.namespace)],
      ['Name', parent.name],
    ]
  )
}

function slicesOf(around: RelatedObjects, namespace: string, service: string): Promise<EndpointSlice[]> {
  const labels = `kubernetes.io/service-name=${service}`
  return around.list<EndpointSlice>('discovery.k8s.io/v1/endpointslices', namespace, { labels })
}

const MOST_ENDPOINTS = 3

/** The first few ready endpoints of the named port. */
function endpointsText(slices: readonly EndpointSlice[], portName: string): string {
  if (slices.length === 0) return '<none>'
  const all = slices.flatMap(({ ports, endpoints }) => {
    const ready = (endpoints ?? []).filter(({ conditions }) => conditions?.ready !== false)
    const addresses = ready.map((endpoint) => endpoint.addresses[0] ?? '')
    if ((ports ?? []).length === 0) return addresses
    const behind = (ports ?? []).filter(({ name = '' }) => name === portName)
    return behind.flatMap(({ port = 0 }) => addresses.map((address) => joined(address, port ?? 0)))
  })
  const shown = all.slice(0, MOST_ENDPOINTS).join(',')
  return all.length > MOST_ENDPOINTS ? `${shown} + ${all.length - MOST_ENDPOINTS} more...` : shown
}

function joined(host: string, port: number): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`
}

async function serviceRows(service: Service, around: RelatedObjects): Promise<Part[]> {
  const { metadata, spec, status } = service
  const slices = await slicesOf(around, metadata.namespace ?? '', metadata.name ?? '').catch((): EndpointSlice[] => [])
  return [
    ...head(service),
    ['Selector', labelsText(spec.selector)],
    ['Type', orEmpty(spec.type)],
    ['IP Family Policy', spec.ipFamilyPolicy],
    ['IP Families', orNone(spec.ipFamilies)],
    ['IP', orEmpty(spec.clusterIP)],
    ['IPs', orNone(spec.clusterIPs)],
    ['External IPs', spec.externalIPs?.join(',') || undefined],
    ['Desired LoadBalancer IP', ifSet(spec.loadBalancerIP)],
    ['External Name', ifSet(spec.externalName)],
    ['LoadBalancer Ingress', ingressText(status.loadBalancer?.ingress)],
    ...(spec.ports ?? []).flatMap((port) => servicePortRows(port, slices)),
    ['Session Affinity', orEmpty(spec.sessionAffinity)],
    ['External Traffic Policy', ifSet(spec.externalTrafficPolicy)],
    ['Internal Traffic Policy', spec.internalTrafficPolicy],
    ['HealthCheck NodePort', ifSet(spec.healthCheckNodePort)],
    ['LoadBalancer Source Ranges', spec.loadBalancerSourceRanges?.join(',') || undefined],
    ['Traffic Distribution', spec.trafficDistribution],
  ]
}

function servicePortRows(servicePort: ServicePort, slices: readonly EndpointSlice[]): Part[] {
  const { name = '', port, protocol = '', nodePort = 0, targetPort, appProtocol } = servicePort
  const shown = name === '' ? '<unset>' : name
  return [
    cells('Port:', shown, `${port}/${protocol}`),
    ['TargetPort', `${targetPort ?? 0}/${protocol}`],
    ['AppProtocol', appProtocol],
    nodePort === 0 ? undefined : cells('NodePort:', shown, `${nodePort}/${protocol}`),
    ['Endpoints', endpointsText(slices, name)],
  ]
}

function ingressText(ingress: readonly LoadBalancerIngress[] = []): string | undefined {
  const texts = ingress.map(({ ip = '', hostname = '', ipMode }) => {
    if (ip === '') return hostname
    return ipMode === undefined ? ip : `${ip} (${ipMode})`
  })
  return texts.length === 0 ? undefined : texts.join(', ')
}

const PORT_COLUMNS = ['Name', 'Port', 'Protocol']

function subsetRows({
  addresses = [],
  notReadyAddresses = [],
  ports = [],
}: NonNullable<Endpoints['subsets']>[number]): Part[] {
  const rows = ports.map(({ name, port, protocol }) => [name || '<unset>', port, protocol])
  return [
    ['Addresses', orNone(addresses.map(({ ip }) => ip))],
    ['NotReadyAddresses', orNone(notReadyAddresses.map(({ ip }) => ip))],
    ['Ports', tableOf(PORT_COLUMNS, rows)],
    '',
  ]
}

function sliceRows(slice: EndpointSlice): Part[] {
  const rows = (slice.ports ?? []).map(({ name, port, protocol }) => [name || '<unset>', port ?? '<unset>', protocol])
  const endpoints = slice.endpoints ?? []
  return [
    ...head(slice),
    ['AddressType', slice.addressType],
    rows.length === 0 ? 'Ports: <unset>' : ['Ports', tableOf(PORT_COLUMNS, rows)],
    endpoints.length === 0 ? 'Endpoints: <none>' : ['Endpoints', endpoints.flatMap(endpointRows)],
  ]
}

function endpointRows({ addresses, conditions, hostname, targetRef, nodeName, zone }: Endpoint): Part[] {
  return [
    ['- Addresses', orNone(addresses, ', ')],
    nested(
      ['Conditions', [['Ready', conditions?.ready ?? '<unset>']]],
      ['Hostname', hostname ?? '<unset>'],
      ['TargetRef', targetRef && `${targetRef.kind ?? ''}/${targetRef.name ?? ''}`],
      ['NodeName', nodeName ?? '<unset>'],
      ['Zone', zone ?? '<unset>'],
    ),
  ]
}

async function backendText(around: RelatedObjects, namespace: string, backend: IngressBackend): Promise<string> {
  const { service, resource } = backend
  if (service === undefined) {
    if (resource === undefined) return ''
    return `APIGroup: ${resource.apiGroup ?? '<none>'}, Kind: ${resource.kind}, Name: ${resource.name}`
  }
  const { number = 0, name = '' } = service.port ?? {}
  const shown = `${service.name}:${number === 0 ? name : number}`
  try {
    const slices = await slicesOf(around, namespace, service.name)
    const { spec } = await around.get<Service>('v1/services', namespace, service.name)
    const found = (spec.ports ?? []).findLast(
      (port) => (number !== 0 && port.port === number) || (name !== '' && port.name === name),
    )
    return `${shown} (${endpointsText(slices, found?.name ?? '')})`
  } catch (error) {
    return `${shown} (<error: ${(error as Error).message}>)`
  }
}

async function ingressRows(ingress: Ingress, around: RelatedObjects): Promise<Part[]> {
  const { metadata, spec, status } = ingress
  const addresses = (status?.loadBalancer?.ingress ?? []).map(({ ip, hostname }) => ip || hostname || '')
  const { defaultBackend, tls = [] } = spec
  const namespace = metadata.namespace ?? ''
  const fallback = defaultBackend === undefined ? '<default>' : await backendText(around, namespace, defaultBackend)
  const secrets = tls.map(({ secretName = '', hosts = [] }) =>
    secretName === '' ? `SNI routes ${hosts.join(',')}` : `${secretName} terminates ${hosts.join(',')}`,
  )
  return [
    ['Name', metadata.name],
    labelRow('Labels', metadata.labels),
    ['Namespace', namespace],
    ['Address', [...new Set(addresses.filter((address) => address !== ''))].sort().join(',')],
    ['Ingress Class', spec.ingressClassName ?? '<none>'],
    ['Default backend', fallback],
    ['TLS', unlessEmpty(secrets)],
    ['Rules', await ingressRuleRows(ingress, fallback, around)],
    annotationRow(metadata.annotations),
  ]
}

async function ingressRuleRows(ingress: Ingress, fallback: string, around: RelatedObjects): Promise<Part[]> {
  const rows: Part[] = [cells('Host', 'Path', 'Backends'), cells('----', '----', '--------')]
  const rules = (ingress.spec?.rules ?? []).filter(({ http }) => http !== undefined)
  for (const { host = '', http } of rules) {
    rows.push(cells(host === '' ? '*' : host, ''))
    for (const { path = '', backend } of http?.paths ?? []) {
      const text = await backendText(around, ingress.metadata.namespace ?? '', backend)
      rows.push(nested(cells('', `${path} `, text)))
    }
  }
  return rules.length === 0 ? [...rows, cells('*', '*', fallback)] : rows
}
