/** Sets the defaults of a Service, before its addresses and ports are allocated. */
import type { Service, ServiceSpec } from '#apis/core/v1.ts'
import { isExternallyAccessible } from '#model/services.ts'

/** Three hours. */
const AFFINITY_SECONDS = 10_800

export function applyDefaults({ spec, status }: Service): void {
  defaultAffinity(spec)
  spec.type ||= 'ClusterIP'
  for (const port of spec.ports ?? []) {
    port.protocol ||= 'TCP'
    port.targetPort ||= port.port
  }
  defaultTraffic(spec)
  if (spec.type !== 'LoadBalancer') return
  spec.allocateLoadBalancerNodePorts ??= true
  for (const ingress of status?.loadBalancer?.ingress ?? []) {
    if ((ingress.ip ?? '') !== '') ingress.ipMode ??= 'VIP'
  }
}

function defaultTraffic(spec: ServiceSpec): void {
  if (isExternallyAccessible(spec)) spec.externalTrafficPolicy ||= 'Cluster'
  if (['ClusterIP', 'NodePort', 'LoadBalancer'].includes(spec.type ?? '')) spec.internalTrafficPolicy ??= 'Cluster'
}

function defaultAffinity(spec: ServiceSpec): void {
  spec.sessionAffinity ||= 'None'
  if (spec.sessionAffinity === 'None') delete spec.sessionAffinityConfig
  if (spec.sessionAffinity !== 'ClientIP' || spec.sessionAffinityConfig?.clientIP?.timeoutSeconds !== undefined) return
  spec.sessionAffinityConfig = { clientIP: { timeoutSeconds: AFFINITY_SECONDS } }
}
