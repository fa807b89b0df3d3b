/** Summaries of Services, their endpoints, Ingresses and NetworkPolicies. */
import type { Service } from '#apis/core/v1.ts'
import type { EndpointSlice } from '#apis/discovery/v1.ts'
import type { Ingress, IngressBackend } from '#apis/networking/v1.ts'

import { fields, link, pairs, type Section, table, type Value } from './section.ts'

export function serviceSections({ spec, status }: Service): readonly Section[] {
  const { ingress = [] } = status?.loadBalancer ?? {}
  return [
    fields('Service', [
      ['Type', spec.type],
      ['Cluster IPs', spec.clusterIPs ?? spec.clusterIP],
      ['External IPs', spec.externalIPs],
      ['External name', spec.externalName],
      ['Load balancer', ingress.map(({ ip, hostname = '' }) => ip ?? hostname)],
      ['Session affinity', spec.sessionAffinity === 'None' ? undefined : spec.sessionAffinity],
      ['Traffic from outside', spec.externalTrafficPolicy],
      ['Selector', pairs(spec.selector)],
    ]),
    ...table(
      'Ports',
      ['Name', 'Port', 'Protocol', 'Target', 'Node port'],
      (spec.ports ?? []).map(({ name = '', port, protocol = 'TCP', targetPort, nodePort }) => [
        name,
        port,
        protocol,
        targetPort ?? port,
        nodePort,
      ]),
    ),
  ]
}

/** The endpoints behind a Service, with the pods that have these addresses. */
export function endpointTable(slices: readonly EndpointSlice[]): readonly Section[] {
  return table(
    'Endpoints',
    ['Address', 'Ports', 'State', 'Pod', 'Node'],
    slices.flatMap(({ endpoints, ports, metadata }) =>
      (endpoints ?? []).map(({ addresses, conditions, targetRef, nodeName }) => [
        [...addresses],
        (ports ?? []).map(({ port = '', protocol = 'TCP' }) => `${port}/${protocol}`),
        endpointState(conditions),
        targetRef?.kind === 'Pod' ? link('v1', 'Pod', targetRef.name ?? '', metadata.namespace) : targetRef?.name,
        nodeName === undefined ? undefined : link('v1', 'Node', nodeName),
      ]),
    ),
  )
}

function endpointState({
  ready,
  serving,
  terminating,
}: {
  ready?: boolean
  serving?: boolean
  terminating?: boolean
}): Value {
  if (terminating === true) return { text: serving === true ? 'Terminating, serving' : 'Terminating', tone: 'busy' }
  return ready === false ? { text: 'Not ready', tone: 'bad' } : { text: 'Ready', tone: 'good' }
}

export function ingressSections({ spec, status, metadata }: Ingress): readonly Section[] {
  const { namespace } = metadata
  const rules = (spec.rules ?? []).flatMap(({ host = '*', http }) =>
    (http?.paths ?? []).map(({ path = '/', pathType, backend }) => [
      host,
      path,
      pathType,
      backendValue(backend, namespace),
    ]),
  )
  return [
    fields('Ingress', [
      [
        'Class',
        spec.ingressClassName === undefined
          ? undefined
          : link('networking.k8s.io/v1', 'IngressClass', spec.ingressClassName),
      ],
      ['Addresses', (status?.loadBalancer?.ingress ?? []).map(({ ip, hostname = '' }) => ip ?? hostname)],
      ['Default backend', spec.defaultBackend && backendValue(spec.defaultBackend, namespace)],
      [
        'TLS',
        (spec.tls ?? []).map(({ hosts = [], secretName = '' }) => ({
          ...link('v1', 'Secret', secretName, namespace),
          text: `${hosts.join(', ')} with Secret ${secretName}`,
        })),
      ],
    ]),
    ...table('Rules', ['Host', 'Path', 'Path type', 'Backend'], rules),
  ]
}

function backendValue({ service, resource }: IngressBackend, namespace?: string): Value {
  if (service === undefined) return { text: `${resource?.kind ?? ''} ${resource?.name ?? ''}` }
  const port = service.port?.number ?? service.port?.name ?? ''
  return { ...link('v1', 'Service', service.name, namespace), text: `${service.name}:${port}` }
}
