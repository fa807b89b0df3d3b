/** The rules of Services. */
import type { LoadBalancerIngress, Service, ServicePort, ServiceSpec } from '#apis/core/v1.ts'
import type { RuleContext } from '#apiserver/registry/resource.ts'
import { parseIp } from '#lib/cidr.ts'
import { validateLegacyCidr, validateLegacyIp } from '#meta/validation/addresses.ts'
import {
  asJson,
  child,
  duplicate,
  type FieldError,
  forbidden,
  index,
  invalid,
  key,
  notSupported,
  required,
  verbatim,
} from '#meta/validation/field-error.ts'
import { dns1035Label, dns1123Label, dns1123Subdomain, portName, portNumber } from '#meta/validation/names.ts'
import { complaining, validateLabels } from '#meta/validation/rules.ts'
import { validateEndpointIp } from '#model/addresses.ts'
import {
  oneOf,
  requiredOneOf,
  validateDnsLabel,
  validateDnsSubdomain,
  validateQualifiedName,
} from '#model/pod-spec/checks.ts'
import { isExternallyAccessible, isHeadless, needsHealthCheck } from '#model/services.ts'

import { validateClusterIps, validateClusterIpsUpdate } from './cluster-ips.ts'

export const TOPOLOGY_HINTS = 'service.kubernetes.io/topology-aware-hints'
export const TOPOLOGY_MODE = 'service.kubernetes.io/topology-mode'
const SOURCE_RANGES = 'service.beta.kubernetes.io/load-balancer-source-ranges'

const types = ['ClusterIP', 'ExternalName', 'LoadBalancer', 'NodePort']
const trafficPolicies = ['Cluster', 'Local']
const onlyLoadBalancer = "may only be used when `type` is 'LoadBalancer'"

/** A name may begin with a digit, unless the gate for that is off. */
export function validateServiceName({ metadata: { name = '' } }: Service, { isEnabled }: RuleContext): FieldError[] {
  if (isEnabled('RelaxedServiceNameValidation') || dns1123Label(name).length > 0) return []
  return complaining('metadata.name', name, dns1035Label(name))
}

export function validateServiceUpdate(next: Service, old: Service, context: RuleContext): FieldError[] {
  const [spec, before] = [next.spec, old.spec]
  const sameClass = spec.loadBalancerClass === before.loadBalancerClass
  const bothBalanced = spec.type === 'LoadBalancer' && before.type === 'LoadBalancer'
  const checked = needsHealthCheck(spec) && needsHealthCheck(before)
  return [
    ...validateClusterIpsUpdate(spec, before),
    ...(bothBalanced && !sameClass
      ? [invalid('spec.loadBalancerClass', spec.loadBalancerClass ?? null, 'may not change once set')]
      : []),
    ...validateBalancerClass(spec),
    ...(checked && (spec.healthCheckNodePort ?? 0) !== (before.healthCheckNodePort ?? 0)
      ? [forbidden('spec.healthCheckNodePort', 'field is immutable')]
      : []),
    ...validateService(next, context, old),
  ]
}

export function validateService(service: Service, { isEnabled }: RuleContext, old?: Service): FieldError[] {
  const { metadata, spec } = service
  const { ports = [], allocateLoadBalancerNodePorts: allocates, type = '' } = spec
  const strict = isEnabled('StrictIPCIDRValidation')
  const isBalanced = type === 'LoadBalancer'
  return [
    ...validateTopology(metadata.annotations),
    ...(ports.length === 0 && !isHeadless(spec) && type !== 'ExternalName' ? [required('spec.ports')] : []),
    ...validateByType(spec),
    ...validatePorts(ports),
    ...validateLabels('spec.selector', spec.selector),
    ...requiredOneOf('spec.sessionAffinity', spec.sessionAffinity, ['ClientIP', 'None']),
    ...validateAffinityConfig(spec),
    ...validateClusterIps(spec, { strict, old: old?.spec }),
    ...(spec.externalIPs ?? []).flatMap((ip, at) => validateExternalIp(index('spec.externalIPs', at), ip, strict, old)),
    ...requiredOneOf('spec.type', type, types),
    ...validateNodePorts(spec),
    ...validateDistinctPorts(ports),
    ...validateSourceRanges(service, old, strict),
    ...(allocates !== undefined && !isBalanced
      ? [forbidden('spec.allocateLoadBalancerNodePorts', onlyLoadBalancer)]
      : []),
    ...(allocates === undefined && isBalanced ? [required('allocateLoadBalancerNodePorts')] : []),
    ...validateBalancerClass(spec),
    ...validateExternalTraffic(spec),
    ...validateInternalTraffic(spec),
    ...oneOfPlain('spec.trafficDistribution', spec.trafficDistribution, [
      'PreferClose',
      'PreferSameZone',
      'PreferSameNode',
    ]),
  ]
}

function oneOfPlain(field: string, value: string | undefined, supported: readonly string[]): FieldError[] {
  return value === undefined || supported.includes(value) ? [] : [notSupported(field, value, supported)]
}

function validateTopology(annotations: Readonly<Record<string, string>> = {}): FieldError[] {
  const [mode, hints] = [annotations[TOPOLOGY_MODE], annotations[TOPOLOGY_HINTS]]
  if (mode === undefined || hints === undefined || mode === hints) return []
  const rule = `must match annotations[${TOPOLOGY_HINTS}] when both are specified`
  return [invalid(key('metadata.annotations', TOPOLOGY_MODE), mode, rule)]
}

function validateByType(spec: ServiceSpec): FieldError[] {
  const { type, clusterIPs = [], ipFamilies = [] } = spec
  if ((type === 'LoadBalancer' || type === 'NodePort') && isHeadless(spec)) {
    return [invalid('spec.clusterIPs[0]', clusterIPs[0], `may not be set to 'None' for ${type} services`)]
  }
  if (type !== 'ExternalName') return []
  const refused = [
    ['clusterIPs', clusterIPs.length > 0],
    ['ipFamilies', ipFamilies.length > 0],
    ['ipFamilyPolicy', spec.ipFamilyPolicy !== undefined],
  ] as const
  // A dot at its end says that nothing comes after it.
  const name = (spec.externalName ?? '').replace(/\.$/, '')
  return [
    ...refused
      .filter(([, isSet]) => isSet)
      .map(([field]) => forbidden(child('spec', field), 'may not be set for ExternalName services')),
    ...(name === '' ? [required('spec.externalName')] : validateDnsSubdomain('spec.externalName', name)),
  ]
}

function validatePorts(ports: readonly ServicePort[]): FieldError[] {
  const names = new Set<string>()
  return ports.flatMap((port, at) => {
    const path = index('spec.ports', at)
    const { name = '', targetPort, appProtocol } = port
    const twice = name !== '' && names.has(name)
    names.add(name)
    return [
      ...(name === '' && ports.length > 1 ? [required(child(path, 'name'))] : []),
      ...(name === '' ? [] : validateDnsLabel(child(path, 'name'), name)),
      ...(twice ? [duplicate(child(path, 'name'), name)] : []),
      ...complaining(child(path, 'port'), port.port, portNumber(port.port)),
      ...requiredOneOf(child(path, 'protocol'), port.protocol, ['SCTP', 'TCP', 'UDP']),
      ...complaining(
        child(path, 'targetPort'),
        targetPort,
        typeof targetPort === 'number' ? portNumber(targetPort) : portName(targetPort),
      ),
      ...(appProtocol === undefined ? [] : validateQualifiedName(child(path, 'appProtocol'), appProtocol)),
    ]
  })
}

/** A day. */
const MAX_AFFINITY_SECONDS = 86_400

function validateAffinityConfig({ sessionAffinity, sessionAffinityConfig: config }: ServiceSpec): FieldError[] {
  const field = 'spec.sessionAffinityConfig'
  if (sessionAffinity === 'None' && config !== undefined) {
    return [forbidden(field, 'must not be set when session affinity is None')]
  }
  if (sessionAffinity !== 'ClientIP') return []
  const when = 'when session affinity type is ClientIP'
  if (config === undefined) return [required(field, when)]
  if (config.clientIP === undefined) return [required(child(field, 'clientIP'), when)]
  const { timeoutSeconds: timeout } = config.clientIP
  const path = child(field, 'clientIP', 'timeoutSeconds')
  if (timeout === undefined) return [required(path, when)]
  if (timeout > 0 && timeout <= MAX_AFFINITY_SECONDS) return []
  return [invalid(path, timeout, `must be greater than 0 and less than ${MAX_AFFINITY_SECONDS}`)]
}

function validateExternalIp(field: string, ip: string, strict: boolean, old: Service | undefined): FieldError[] {
  const errors = validateLegacyIp(field, ip, { strict, old: old?.spec.externalIPs ?? [] })
  return errors.length > 0 ? errors : validateEndpointIp(field, ip)
}

function validateNodePorts({ type, ports = [] }: ServiceSpec): FieldError[] {
  const path = (at: number): string => child(index('spec.ports', at), 'nodePort')
  const refused = ports.flatMap(({ nodePort = 0 }, at) =>
    type === 'ClusterIP' && nodePort !== 0 ? [forbidden(path(at), "may not be used when `type` is 'ClusterIP'")] : [],
  )
  return [
    ...refused,
    ...repeated(ports, ({ nodePort = 0, protocol = '' }) =>
      nodePort === 0 ? undefined : `${protocol}/${nodePort}`,
    ).map((at) => duplicate(path(at), ports[at]?.nodePort)),
  ]
}

function validateDistinctPorts(ports: readonly ServicePort[]): FieldError[] {
  return repeated(ports, ({ port, protocol = '' }) => `${protocol}/${port}`).map((at) => {
    const { port = 0, protocol = '' } = ports[at] ?? {}
    // The value as upstream's own type is printed, which has no names for JSON.
    const shown = `{"Name":"","Protocol":${JSON.stringify(protocol)},"AppProtocol":null,"Port":${port},"TargetPort":0,"NodePort":0}`
    return duplicate(index('spec.ports', at), verbatim(shown))
  })
}

/** Where something is that was there before. */
function repeated(ports: readonly ServicePort[], keyOf: (port: ServicePort) => string | undefined): number[] {
  const seen = new Set<string>()
  return [...ports.entries()].flatMap(([at, port]) => {
    const one = keyOf(port)
    if (one === undefined) return []
    if (seen.has(one)) return [at]
    seen.add(one)
    return []
  })
}

/** Ranges may have spaces around them: they were once written into an annotation, between commas. */
function validateSourceRanges({ metadata, spec }: Service, old: Service | undefined, strict: boolean): FieldError[] {
  const { loadBalancerSourceRanges: ranges = [], type } = spec
  const refused = (field: string): FieldError[] => (type === 'LoadBalancer' ? [] : [forbidden(field, onlyLoadBalancer)])
  if (ranges.length > 0) {
    const field = 'spec.LoadBalancerSourceRanges'
    const kept = (old?.spec.loadBalancerSourceRanges ?? []).map((range) => range.trim())
    return [
      ...refused(field),
      ...ranges.flatMap((range, at) => validateLegacyCidr(index(field, at), range.trim(), { strict, old: kept })),
    ]
  }
  const text = metadata.annotations?.[SOURCE_RANGES]
  if (text === undefined) return []
  const field = key('metadata.annotations', SOURCE_RANGES)
  const unchanged = old?.metadata.annotations?.[SOURCE_RANGES] === text
  if (unchanged || text.trim() === '') return refused(field)
  return [
    ...refused(field),
    ...text
      .trim()
      .split(',')
      .flatMap((range) => validateLegacyCidr(field, range.trim(), { strict })),
  ]
}

function validateBalancerClass({ type, loadBalancerClass }: ServiceSpec): FieldError[] {
  if (loadBalancerClass === undefined) return []
  if (type === 'LoadBalancer') return validateQualifiedName('spec.loadBalancerClass', loadBalancerClass)
  return [forbidden('spec.loadBalancerClass', onlyLoadBalancer)]
}

function validateExternalTraffic(spec: ServiceSpec): FieldError[] {
  return [...validateExternalPolicy(spec), ...validateHealthPort(spec)]
}

function validateExternalPolicy(spec: ServiceSpec): FieldError[] {
  const { externalTrafficPolicy: policy = '' } = spec
  const field = 'spec.externalTrafficPolicy'
  if (isExternallyAccessible(spec)) return requiredOneOf(field, policy, trafficPolicies)
  return policy === '' ? [] : [invalid(field, asJson(policy), 'may only be set for externally-accessible services')]
}

function validateHealthPort(spec: ServiceSpec): FieldError[] {
  const { healthCheckNodePort: port = 0 } = spec
  const field = 'spec.healthCheckNodePort'
  if (needsHealthCheck(spec)) return port === 0 ? [required(field)] : complaining(field, port, portNumber(port))
  if (port === 0) return []
  const rule = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"
  return [invalid(field, port, rule)]
}

function validateInternalTraffic({ type = '', internalTrafficPolicy: policy }: ServiceSpec): FieldError[] {
  const field = 'spec.internalTrafficPolicy'
  if (policy !== undefined) return oneOf(field, policy, trafficPolicies)
  return ['ClusterIP', 'LoadBalancer', 'NodePort'].includes(type) ? [required(field)] : []
}

/** The status: where a load balancer is reached. */
export function validateServiceStatus(
  { spec, status }: Service,
  old: Service,
  { isEnabled }: RuleContext,
): FieldError[] {
  const ingress = status?.loadBalancer?.ingress ?? []
  const field = 'status.loadBalancer.ingress'
  if (spec.type !== 'LoadBalancer' && ingress.length > 0) {
    return [forbidden(field, "may only be used when `spec.type` is 'LoadBalancer'")]
  }
  const kept = (old.status?.loadBalancer?.ingress ?? []).flatMap(({ ip = '' }) => (ip === '' ? [] : [ip]))
  const rules = { strict: isEnabled('StrictIPCIDRValidation'), old: kept }
  return ingress.flatMap((one, at) => validateIngress(index(field, at), one, rules))
}

function validateIngress(
  path: string,
  { ip = '', ipMode, hostname = '' }: LoadBalancerIngress,
  rules: { readonly strict: boolean; readonly old: readonly string[] },
): FieldError[] {
  const isAddress = hostname !== '' && parseIp(hostname, { sloppy: true }) !== undefined
  return [
    ...(ip === '' ? [] : validateLegacyIp(child(path, 'ip'), ip, rules)),
    ...validateIpMode(child(path, 'ipMode'), ip, ipMode),
    ...(hostname === '' ? [] : complaining(child(path, 'hostname'), hostname, dns1123Subdomain(hostname))),
    ...(isAddress ? [invalid(child(path, 'hostname'), hostname, 'must be a DNS name, not an IP address')] : []),
  ]
}

function validateIpMode(field: string, ip: string, mode: string | undefined): FieldError[] {
  if (mode === undefined) return ip === '' ? [] : [required(field, 'must be specified when `ip` is set')]
  if (ip === '') return [forbidden(field, 'may not be specified when `ip` is not set')]
  return oneOf(field, mode, ['Proxy', 'VIP'])
}
