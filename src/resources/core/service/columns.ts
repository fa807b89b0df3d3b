/** The table columns of Services. */
import type { Service, ServicePort } from '#apis/core/v1.ts'
import { ageColumn, nameColumn } from '#apiserver/registry/columns.ts'
import type { Column } from '#apiserver/registry/resource.ts'
import { compareText } from '#lib/go/text.ts'
import { labelsText } from '#meta/labels.ts'

export const serviceColumns: readonly Column<Service>[] = [
  nameColumn,
  { name: 'Type', value: ({ spec }) => spec.type ?? '' },
  { name: 'Cluster-IP', value: ({ spec }) => spec.clusterIPs?.[0] ?? '<none>' },
  { name: 'External-IP', value: externalText },
  { name: 'Port(s)', value: ({ spec }) => (spec.ports ?? []).map(portText).join(',') || '<none>' },
  ageColumn,
  { name: 'Selector', wide: true, value: ({ spec }) => labelsText(spec.selector) },
]

function externalText({ spec, status }: Service): string {
  const { externalIPs = [], externalName = '', type } = spec
  switch (type) {
    case 'ClusterIP':
    case 'NodePort':
      return externalIPs.join(',') || '<none>'
    case 'LoadBalancer':
      return [...balancers(status), ...externalIPs].join(',') || '<pending>'
    case 'ExternalName':
      return externalName
    default:
      return '<unknown>'
  }
}

function balancers(status: Service['status'] | undefined): string[] {
  const names = (status?.loadBalancer?.ingress ?? []).map(({ ip, hostname }) => ip || hostname || '')
  return [...new Set(names.filter((name) => name !== ''))].sort(compareText)
}

function portText({ port, nodePort = 0, protocol = '' }: ServicePort): string {
  return nodePort > 0 ? `${port}:${nodePort}/${protocol}` : `${port}/${protocol}`
}
