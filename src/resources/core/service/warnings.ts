/** Warns about likely mistakes in a Service (pkg/api/service/warnings.go, v1.36). */
import type { Service, ServiceSpec } from '#apis/core/v1.ts'
import { fieldPath, type FieldPath } from '#meta/validation/field-path.ts'
import { cidrWarnings } from '#model/addresses.ts'
import { addressWarnings } from '#model/pod-spec/warnings/addresses.ts'
import { HEADLESS } from '#model/services.ts'

import { TOPOLOGY_HINTS, TOPOLOGY_MODE } from './validation.ts'

export function serviceWarnings({ metadata, spec }: Service): string[] {
  const { clusterIP = '', clusterIPs = [], externalIPs = [], loadBalancerIP = '', loadBalancerSourceRanges = [] } = spec
  const hinted = Object.hasOwn(metadata.annotations ?? {}, TOPOLOGY_HINTS)
  const addressed = clusterIP !== '' && clusterIP !== HEADLESS
  return [
    ...(hinted ? [`annotation ${TOPOLOGY_HINTS} is deprecated, please use ${TOPOLOGY_MODE} instead`] : []),
    ...(addressed ? listWarnings(fieldPath('spec.clusterIPs'), clusterIPs) : []),
    ...headlessWarnings(spec),
    ...listWarnings(fieldPath('spec.externalIPs'), externalIPs),
    ...externalIpWarnings(spec),
    ...(loadBalancerIP === '' ? [] : addressWarnings(fieldPath('spec.loadBalancerIP'), loadBalancerIP)),
    ...loadBalancerSourceRanges.flatMap((range, at) =>
      cidrWarnings(fieldPath('spec.loadBalancerSourceRanges').index(at), range),
    ),
    ...typeWarnings(spec),
  ]
}

export function statusWarnings({ status }: Service): string[] {
  return (status?.loadBalancer?.ingress ?? []).flatMap(({ ip = '' }, at) =>
    ip === '' ? [] : addressWarnings(fieldPath('status.loadBalancer.ingress').index(at), ip),
  )
}

function listWarnings(path: FieldPath, ips: readonly string[]): string[] {
  return ips.flatMap((ip, at) => addressWarnings(path.index(at), ip))
}

function isHeadless({ type, clusterIP }: ServiceSpec): boolean {
  return type === 'ClusterIP' && clusterIP === HEADLESS
}

function headlessWarnings(spec: ServiceSpec): string[] {
  if (!isHeadless(spec)) return []
  const ignored = [
    ['loadBalancerIP', (spec.loadBalancerIP ?? '') !== ''],
    ['externalIPs', (spec.externalIPs ?? []).length > 0],
    ['SessionAffinity', spec.sessionAffinity !== 'None'],
  ] as const
  return ignored.filter(([, isSet]) => isSet).map(([name]) => `spec.${name} is ignored for headless services`)
}

function externalIpWarnings(spec: ServiceSpec): string[] {
  if ((spec.externalIPs ?? []).length === 0 || isHeadless(spec) || spec.type === 'ExternalName') return []
  return ['spec.externalIPs is deprecated and may no longer be implemented in some clusters']
}

function typeWarnings({ type, externalIPs = [], externalName = '', trafficDistribution }: ServiceSpec): string[] {
  const isName = type === 'ExternalName'
  return [
    ...(isName && externalIPs.length > 0 ? ['spec.externalIPs is ignored when spec.type is "ExternalName"'] : []),
    ...(!isName && externalName !== '' ? ['spec.externalName is ignored when spec.type is not "ExternalName"'] : []),
    ...(trafficDistribution === 'PreferClose'
      ? ['spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone"']
      : []),
  ]
}
