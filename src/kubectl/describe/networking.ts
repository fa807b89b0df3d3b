/** Services, their endpoints, and what leads traffic to them or keeps it away. */
import type { Endpoints, LoadBalancerIngress, Service, ServicePort } from '#apis/core/v1.ts'
import type { Endpoint, EndpointSlice } from '#apis/discovery/v1.ts'
import type {
  IPAddress,
  Ingress,
  IngressBackend,
  IngressClass,
  NetworkPolicy,
  NetworkPolicyPeer,
  NetworkPolicyPort,
  ServiceCIDR,
} from '#apis/networking/v1.ts'
import { labelSelectorText } from '#meta/label-selector.ts'
import { labelsText } from '#meta/labels.ts'

import type { Surroundings } from './describer.ts'
import { Page } from './page.ts'
import { putAnnotations, putClusterHead, putEventsOf, putHead, putLabels, putTimedConditions } from './sections.ts'
import { plainDateText } from './times.ts'

function slicesOf(around: Surroundings, namespace: string, service: string): Promise<EndpointSlice[]> {
  const labels = `kubernetes.io/service-name=${service}`
  return around.list<EndpointSlice>('discovery.k8s.io/v1/endpointslices', namespace, { labels })
}

const MOST_ENDPOINTS = 3

/** Those that are ready, behind the port of that name; a few of them. */
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

export async function describeService(service: Service, around: Surroundings): Promise<string> {
  const page = new Page()
  const { metadata, spec, status } = service
  const slices = await slicesOf(around, metadata.namespace ?? '', metadata.name ?? '').catch((): EndpointSlice[] => [])
  putHead(page, service)
  page.rows(0, [
    ['Selector', labelsText(spec.selector)],
    ['Type', spec.type ?? ''],
    ['IP Family Policy', spec.ipFamilyPolicy],
    ['IP Families', orNone(spec.ipFamilies)],
    ['IP', spec.clusterIP ?? ''],
    ['IPs', orNone(spec.clusterIPs)],
    ['External IPs', ifAny(spec.externalIPs)],
    ['Desired LoadBalancer IP', spec.loadBalancerIP || undefined],
    ['External Name', spec.externalName || undefined],
    ['LoadBalancer Ingress', ingressText(status.loadBalancer?.ingress)],
  ])
  for (const port of spec.ports ?? []) putServicePort(page, port, slices)
  page.rows(0, [
    ['Session Affinity', spec.sessionAffinity ?? ''],
    ['External Traffic Policy', spec.externalTrafficPolicy || undefined],
    ['Internal Traffic Policy', spec.internalTrafficPolicy],
    ['HealthCheck NodePort', spec.healthCheckNodePort || undefined],
    ['LoadBalancer Source Ranges', ifAny(spec.loadBalancerSourceRanges)],
    ['Traffic Distribution', spec.trafficDistribution],
  ])
  await putEventsOf(page, service, around)
  return page.text()
}

function putServicePort(page: Page, port: ServicePort, slices: readonly EndpointSlice[]): void {
  const { name = '', protocol = '', nodePort = 0, appProtocol } = port
  const shown = name === '' ? '<unset>' : name
  page.line(0, 'Port:', shown, `${port.port}/${protocol}`)
  page.row(0, 'TargetPort', `${port.targetPort ?? 0}/${protocol}`)
  page.row(0, 'AppProtocol', appProtocol)
  if (nodePort !== 0) page.line(0, 'NodePort:', shown, `${nodePort}/${protocol}`)
  page.row(0, 'Endpoints', endpointsText(slices, name))
}

function ifAny(items: readonly string[] = []): string | undefined {
  return items.length === 0 ? undefined : items.join(',')
}

function orNone(items: readonly string[] | undefined): string {
  return ifAny(items) ?? '<none>'
}

function ingressText(ingress: readonly LoadBalancerIngress[] = []): string | undefined {
  const texts = ingress.map(({ ip = '', hostname = '', ipMode }) => {
    if (ip === '') return hostname
    return ipMode === undefined ? ip : `${ip} (${ipMode})`
  })
  return texts.length === 0 ? undefined : texts.join(', ')
}

export async function describeEndpoints(endpoints: Endpoints, around: Surroundings): Promise<string> {
  const page = new Page()
  putHead(page, endpoints)
  page.put(0, 'Subsets:\n')
  for (const { addresses = [], notReadyAddresses = [], ports = [] } of endpoints.subsets ?? []) {
    page.row(1, 'Addresses', orNone(addresses.map(({ ip }) => ip)))
    page.row(1, 'NotReadyAddresses', orNone(notReadyAddresses.map(({ ip }) => ip)))
    if (ports.length > 0) {
      page.put(1, 'Ports:\n')
      page.table(
        2,
        ['Name', 'Port', 'Protocol'],
        ports.map(({ name, port, protocol }) => [name || '<unset>', port, protocol]),
      )
    }
    page.put(0, '\n')
  }
  await putEventsOf(page, endpoints, around)
  return page.text()
}

export async function describeEndpointSlice(slice: EndpointSlice, around: Surroundings): Promise<string> {
  const page = new Page()
  putHead(page, slice)
  page.row(0, 'AddressType', slice.addressType)
  const ports = slice.ports ?? []
  page.put(0, ports.length === 0 ? 'Ports: <unset>\n' : 'Ports:\n')
  if (ports.length > 0) {
    const rows = ports.map(({ name, port, protocol }) => [name || '<unset>', port ?? '<unset>', protocol])
    page.table(1, ['Name', 'Port', 'Protocol'], rows)
  }
  const endpoints = slice.endpoints ?? []
  page.put(0, endpoints.length === 0 ? 'Endpoints: <none>\n' : 'Endpoints:\n')
  for (const endpoint of endpoints) putEndpoint(page, endpoint)
  await putEventsOf(page, slice, around)
  return page.text()
}

function putEndpoint(page: Page, endpoint: Endpoint): void {
  const { addresses, conditions, targetRef } = endpoint
  page.row(1, '- Addresses', addresses.length === 0 ? '<none>' : addresses.join(', '))
  page.put(2, 'Conditions:\n')
  page.row(3, 'Ready', conditions?.ready ?? '<unset>')
  page.rows(2, [
    ['Hostname', endpoint.hostname ?? '<unset>'],
    ['TargetRef', targetRef && `${targetRef.kind ?? ''}/${targetRef.name ?? ''}`],
    ['NodeName', endpoint.nodeName ?? '<unset>'],
    ['Zone', endpoint.zone ?? '<unset>'],
  ])
}

async function backendText(around: Surroundings, namespace: string, backend: IngressBackend): Promise<string> {
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

export async function describeIngress(ingress: Ingress, around: Surroundings): Promise<string> {
  const page = new Page()
  const { metadata, spec, status } = ingress
  const namespace = metadata.namespace ?? ''
  page.row(0, 'Name', metadata.name)
  putLabels(page, 'Labels', metadata.labels)
  const addresses = (status?.loadBalancer?.ingress ?? []).map(({ ip, hostname }) => ip || hostname || '')
  const { defaultBackend } = spec
  const fallback = defaultBackend === undefined ? '<default>' : await backendText(around, namespace, defaultBackend)
  page.rows(0, [
    ['Namespace', namespace],
    ['Address', [...new Set(addresses.filter((address) => address !== ''))].sort().join(',')],
    ['Ingress Class', spec.ingressClassName ?? '<none>'],
    ['Default backend', fallback],
  ])
  if ((spec.tls ?? []).length > 0) page.put(0, 'TLS:\n')
  for (const { secretName = '', hosts = [] } of spec.tls ?? []) {
    page.line(1, secretName === '' ? `SNI routes ${hosts.join(',')}` : `${secretName} terminates ${hosts.join(',')}`)
  }
  await putIngressRules(page, ingress, fallback, around)
  putAnnotations(page, 'Annotations', metadata.annotations)
  await putEventsOf(page, ingress, around)
  return page.text()
}

async function putIngressRules(page: Page, ingress: Ingress, fallback: string, around: Surroundings): Promise<void> {
  page.put(0, 'Rules:\n')
  page.line(1, 'Host', 'Path', 'Backends')
  page.line(1, '----', '----', '--------')
  const rules = (ingress.spec?.rules ?? []).filter(({ http }) => http !== undefined)
  for (const { host = '', http } of rules) {
    page.line(1, host === '' ? '*' : host, '')
    for (const { path = '', backend } of http?.paths ?? []) {
      page.line(2, '', `${path} `, await backendText(around, ingress.metadata.namespace ?? '', backend))
    }
  }
  if (rules.length === 0) page.line(1, '*', '*', fallback)
}

export async function describeIngressClass(ingressClass: IngressClass, around: Surroundings): Promise<string> {
  const page = new Page()
  putClusterHead(page, ingressClass)
  page.row(0, 'Controller', ingressClass.spec?.controller ?? '')
  const parameters = ingressClass.spec?.parameters
  if (parameters !== undefined) {
    page.put(0, 'Parameters:\n')
    page.rows(1, [
      ['APIGroup', parameters.apiGroup],
      ['Kind', parameters.kind],
      ['Name', parameters.name],
    ])
  }
  await putEventsOf(page, ingressClass, around)
  return page.text()
}

export async function describeServiceCidr(cidr: ServiceCIDR, around: Surroundings): Promise<string> {
  const page = new Page()
  putClusterHead(page, cidr)
  page.row(0, 'CIDRs', (cidr.spec?.cidrs ?? []).join(', '))
  const { conditions = [] } = cidr.status ?? {}
  if (conditions.length > 0) page.put(0, 'Status:\n')
  putTimedConditions(page, conditions)
  await putEventsOf(page, cidr, around)
  return page.text()
}

export async function describeIpAddress(address: IPAddress, around: Surroundings): Promise<string> {
  const page = new Page()
  putClusterHead(page, address)
  const parent = address.spec?.parentRef
  if (parent !== undefined) {
    page.put(0, 'Parent Reference:\n')
    page.rows(1, [
      ['Group', parent.group ?? ''],
      ['Resource', parent.resource],
      ['Namespace', parent.namespace ?? ''],
      ['Name', parent.name],
    ])
  }
  await putEventsOf(page, address, around)
  return page.text()
}

export function describeNetworkPolicy(policy: NetworkPolicy): Promise<string> {
  const page = new Page()
  const { metadata, spec } = policy
  const { podSelector, policyTypes = [], ingress = [], egress = [] } = spec ?? {}
  page.rows(0, [
    ['Name', metadata.name],
    ['Namespace', metadata.namespace ?? ''],
    ['Created on', plainDateText(metadata.creationTimestamp)],
  ])
  putLabels(page, 'Labels', metadata.labels)
  putAnnotations(page, 'Annotations', metadata.annotations)
  const selector = labelSelectorText(podSelector)
  const isAll = selector === '<none>'
  page.put(0, 'Spec:\n')
  page.put(
    1,
    `PodSelector:     ${isAll ? '<none> (Allowing the specific traffic to all pods in this namespace)' : selector}\n`,
  )
  const directions = [
    ['Ingress', 'From', 'source', ingress.map(({ ports, from }) => ({ ports, peers: from }))],
    ['Egress', 'To', 'destination', egress.map(({ ports, to }) => ({ ports, peers: to }))],
  ] as const
  for (const [type, word, end, rules] of directions) {
    const name = type.toLowerCase()
    const isOn = policyTypes.includes(type)
    page.put(1, isOn ? `Allowing ${name} traffic:\n` : `Not affecting ${name} traffic\n`)
    if (isOn) putRules(page, rules, { name, word, end })
  }
  page.put(1, `Policy Types: ${policyTypes.length === 0 ? '<none>' : policyTypes.join(', ')}\n`)
  return Promise.resolve(page.text())
}

interface PolicyRule {
  readonly ports: readonly NetworkPolicyPort[] | undefined
  readonly peers: readonly NetworkPolicyPeer[] | undefined
}

interface Direction {
  readonly name: string
  readonly word: 'From' | 'To'
  readonly end: string
}

function putRules(page: Page, rules: readonly PolicyRule[], { name, word, end }: Direction): void {
  if (rules.length === 0) page.line(2, `<none> (Selected pods are isolated for ${name} connectivity)`)
  for (const [at, { ports = [], peers = [] }] of rules.entries()) {
    if (ports.length === 0) page.line(2, 'To Port: <any> (traffic allowed to all ports)')
    for (const { port = '<nil>', endPort, protocol = 'TCP' } of ports) {
      page.line(
        2,
        endPort === undefined ? `To Port: ${port}/${protocol}` : `To Port Range: ${port}-${endPort}/${protocol}`,
      )
    }
    if (peers.length === 0) page.line(2, `${word}: <any> (traffic not restricted by ${end})`)
    for (const peer of peers) {
      page.line(2, `${word}:`)
      putPeer(page, peer)
    }
    if (at < rules.length - 1) page.line(2, '----------')
  }
}

function putPeer(page: Page, { podSelector, namespaceSelector, ipBlock }: NetworkPolicyPeer): void {
  if (namespaceSelector !== undefined) page.line(3, `NamespaceSelector: ${labelSelectorText(namespaceSelector)}`)
  if (podSelector !== undefined) page.line(3, `PodSelector: ${labelSelectorText(podSelector)}`)
  if (namespaceSelector !== undefined || podSelector !== undefined || ipBlock === undefined) return
  page.line(3, 'IPBlock:')
  page.line(4, `CIDR: ${ipBlock.cidr}`)
  page.line(4, `Except: ${(ipBlock.except ?? []).join(', ')}`)
}
