/** Validates Services. */
import type { LoadBalancerIngress, Service, ServicePort, ServiceSpec } from '#apis/core/v1.ts'
import type { RuleContext } from '#apiserver/registry/resource.ts'
import { parseIp } from '#lib/net/cidr.ts'
import { createRepetition } from '#lib/repetition.ts'
import { validateLegacyCidr, validateLegacyIp } from '#meta/validation/addresses.ts'
import {
  asJson,
  collectErrors,
  type FieldError,
  fieldPath,
  type FieldPath,
  verbatim,
} from '#meta/validation/field-path.ts'
import { dns1035Label, dns1123Label, dns1123Subdomain, portName, portNumber } from '#meta/validation/names.ts'
import {
  oneOf,
  requiredOneOf,
  validateDnsLabel,
  validateDnsSubdomain,
  validateLabels,
  validateQualifiedName,
} from '#meta/validation/rules.ts'
import { validateEndpointIp } from '#model/addresses.ts'
import { isExternallyAccessible, isHeadless, needsHealthCheck } from '#model/services.ts'

import { validateClusterIps, validateClusterIpsUpdate } from './cluster-ips.ts'

export const TOPOLOGY_HINTS = 'service.kubernetes.io/topology-aware-hints'
export const TOPOLOGY_MODE = 'service.kubernetes.io/topology-mode'
const SOURCE_RANGES = 'service.beta.kubernetes.io/load-balancer-source-ranges'

const types = ['ClusterIP', 'ExternalName', 'LoadBalancer', 'NodePort']
const trafficPolicies = ['Cluster', 'Local']
const onlyLoadBalancer = "may only be used when `type` is 'LoadBalancer'"

/** A name may begin with a digit, unless the gate is off. */
export function validateServiceName({ metadata: { name = '' } }: Service, { isEnabled }: RuleContext): FieldError[] {
  if (isEnabled('RelaxedServiceNameValidation') || dns1123Label(name).length > 0) return []
  return fieldPath('metadata.name').check(name, dns1035Label)
}

export function validateServiceUpdate(next: Service, old: Service, context: RuleContext): FieldError[] {
  const [spec, before] = [next.spec, old.spec]
  const sameClass = spec.loadBalancerClass === before.loadBalancerClass
  const bothBalanced = spec.type === 'LoadBalancer' && before.type === 'LoadBalancer'
  const checked = needsHealthCheck(spec) && needsHealthCheck(before)
  return collectErrors(
    validateClusterIpsUpdate(spec, before),
    bothBalanced &&
      !sameClass &&
      fieldPath('spec.loadBalancerClass').invalid(spec.loadBalancerClass ?? null, 'may not change once set'),
    validateBalancerClass(spec),
    checked &&
      (spec.healthCheckNodePort ?? 0) !== (before.healthCheckNodePort ?? 0) &&
      fieldPath('spec.healthCheckNodePort').forbidden('field is immutable'),
    validateService(next, context, old),
  )
}

export function validateService(service: Service, { isEnabled }: RuleContext, old?: Service): FieldError[] {
  const { metadata, spec } = service
  const { ports = [], allocateLoadBalancerNodePorts: allocates, type = '' } = spec
  const strict = isEnabled('StrictIPCIDRValidation')
  const isBalanced = type === 'LoadBalancer'
  return collectErrors(
    validateTopology(metadata.annotations),
    ports.length === 0 && !isHeadless(spec) && type !== 'ExternalName' && fieldPath('spec.ports').required(),
    validateByType(spec),
    validatePorts(ports),
    validateLabels(fieldPath('spec.selector'), spec.selector),
    requiredOneOf(fieldPath('spec.sessionAffinity'), spec.sessionAffinity, ['ClientIP', 'None']),
    validateAffinityConfig(spec),
    validateClusterIps(spec, { strict, old: old?.spec }),
    fieldPath('spec.externalIPs').each(spec.externalIPs, (path, ip) => validateExternalIp(path, ip, strict, old)),
    requiredOneOf(fieldPath('spec.type'), type, types),
    validateNodePorts(spec),
    validateDistinctPorts(ports),
    validateSourceRanges(service, old, strict),
    allocates !== undefined &&
      !isBalanced &&
      fieldPath('spec.allocateLoadBalancerNodePorts').forbidden(onlyLoadBalancer),
    allocates === undefined && isBalanced && fieldPath('allocateLoadBalancerNodePorts').required(),
    validateBalancerClass(spec),
    validateExternalTraffic(spec),
    validateInternalTraffic(spec),
    oneOfPlain(fieldPath('spec.trafficDistribution'), spec.trafficDistribution, [
      'PreferClose',
      'PreferSameZone',
      'PreferSameNode',
    ]),
  )
}

function oneOfPlain(path: FieldPath, value: string | undefined, supported: readonly string[]): FieldError[] {
  return value === undefined || supported.includes(value) ? [] : [path.notSupported(value, supported)]
}

function validateTopology(annotations: Readonly<Record<string, string>> = {}): FieldError[] {
  const [mode, hints] = [annotations[TOPOLOGY_MODE], annotations[TOPOLOGY_HINTS]]
  if (mode === undefined || hints === undefined || mode === hints) return []
  const rule = `must match annotations[${TOPOLOGY_HINTS}] when both are specified`
  return [fieldPath('metadata.annotations').key(TOPOLOGY_MODE).invalid(mode, rule)]
}

function validateByType(spec: ServiceSpec): FieldError[] {
  const { type, clusterIPs = [], ipFamilies = [] } = spec
  if ((type === 'LoadBalancer' || type === 'NodePort') && isHeadless(spec)) {
    return [fieldPath('spec.clusterIPs[0]').invalid(clusterIPs[0], `may not be set to 'None' for ${type} services`)]
  }
  if (type !== 'ExternalName') return []
  const refused = [
    ['clusterIPs', clusterIPs.length > 0],
    ['ipFamilies', ipFamilies.length > 0],
    ['ipFamilyPolicy', spec.ipFamilyPolicy !== undefined],
  ] as const
  // A trailing dot makes it fully qualified.
  const name = (spec.externalName ?? '').replace(/\.$/, '')
  return [
    ...refused
      .filter(([, isSet]) => isSet)
      .map(([field]) => fieldPath('spec').child(field).forbidden('may not be set for ExternalName services')),
    ...(name === ''
      ? [fieldPath('spec.externalName').required()]
      : validateDnsSubdomain(fieldPath('spec.externalName'), name)),
  ]
}

function validatePorts(ports: readonly ServicePort[]): FieldError[] {
  const isRepeated = createRepetition()
  return fieldPath('spec.ports').each(ports, (path, port) => {
    const { name = '', targetPort, appProtocol } = port
    const twice = isRepeated(name) && name !== ''
    return collectErrors(
      name === '' && ports.length > 1 && path.child('name').required(),
      name !== '' && validateDnsLabel(path.child('name'), name),
      twice && path.child('name').duplicate(name),
      path.child('port').check(port.port, portNumber),
      requiredOneOf(path.child('protocol'), port.protocol, ['SCTP', 'TCP', 'UDP']),
      path
        .child('targetPort')
        .check(targetPort, () => (typeof targetPort === 'number' ? portNumber(targetPort) : portName(targetPort))),
      appProtocol !== undefined && validateQualifiedName(path.child('appProtocol'), appProtocol),
    )
  })
}

/** A day. */
const MAX_AFFINITY_SECONDS = 86_400

function validateAffinityConfig({ sessionAffinity, sessionAffinityConfig: config }: ServiceSpec): FieldError[] {
  const field = fieldPath('spec.sessionAffinityConfig')
  if (sessionAffinity === 'None' && config !== undefined) {
    return [field.forbidden('must not be set when session affinity is None')]
  }
  if (sessionAffinity !== 'ClientIP') return []
  const when = 'when session affinity type is ClientIP'
  if (config === undefined) return [field.required(when)]
  if (config.clientIP === undefined) return [field.child('clientIP').required(when)]
  const { timeoutSeconds: timeout } = config.clientIP
  const path = field.child('clientIP.timeoutSeconds')
  if (timeout === undefined) return [path.required(when)]
  if (timeout > 0 && timeout <= MAX_AFFINITY_SECONDS) return []
  return [path.invalid(timeout, `must be greater than 0 and less than ${MAX_AFFINITY_SECONDS}`)]
}

function validateExternalIp(path: FieldPath, ip: string, strict: boolean, old: Service | undefined): FieldError[] {
  const errors = validateLegacyIp(path, ip, { strict, old: old?.spec.externalIPs ?? [] })
  return errors.length > 0 ? errors : validateEndpointIp(path, ip)
}

function validateNodePorts({ type, ports = [] }: ServiceSpec): FieldError[] {
  const path = (at: number): FieldPath => fieldPath('spec.ports').index(at).child('nodePort')
  const refused = ports.flatMap(({ nodePort = 0 }, at) =>
    type === 'ClusterIP' && nodePort !== 0 ? [path(at).forbidden("may not be used when `type` is 'ClusterIP'")] : [],
  )
  return [
    ...refused,
    ...repeated(ports, ({ nodePort = 0, protocol = '' }) =>
      nodePort === 0 ? undefined : `${protocol}/${nodePort}`,
    ).map((at) => path(at).duplicate(ports[at]?.nodePort)),
  ]
}

function validateDistinctPorts(ports: readonly ServicePort[]): FieldError[] {
  return repeated(ports, ({ port, protocol = '' }) => `${protocol}/${port}`).map((at) => {
    const { port = 0, protocol = '' } = ports[at] ?? {}
    // Upstream's Go form of the value.
    const shown = `{"Name":"","Protocol":${JSON.stringify(protocol)},"AppProtocol":null,"Port":${port},"TargetPort":0,"NodePort":0}`
    return fieldPath('spec.ports').index(at).duplicate(verbatim(shown))
  })
}

/** The index of an old value. */
function repeated(ports: readonly ServicePort[], keyOf: (port: ServicePort) => string | undefined): number[] {
  const isRepeated = createRepetition()
  return [...ports.entries()].flatMap(([at, port]) => {
    const one = keyOf(port)
    if (one === undefined) return []
    if (isRepeated(one)) return [at]
    return []
  })
}

/** Ranges may have surrounding spaces, from the time when an annotation listed them. */
function validateSourceRanges({ metadata, spec }: Service, old: Service | undefined, strict: boolean): FieldError[] {
  const { loadBalancerSourceRanges: ranges = [], type } = spec
  const refused = (path: FieldPath): FieldError[] => (type === 'LoadBalancer' ? [] : [path.forbidden(onlyLoadBalancer)])
  if (ranges.length > 0) {
    const field = fieldPath('spec.LoadBalancerSourceRanges')
    const kept = (old?.spec.loadBalancerSourceRanges ?? []).map((range) => range.trim())
    return [
      ...refused(field),
      ...field.each(ranges, (path, range) => validateLegacyCidr(path, range.trim(), { strict, old: kept })),
    ]
  }
  const text = metadata.annotations?.[SOURCE_RANGES]
  if (text === undefined) return []
  const field = fieldPath('metadata.annotations').key(SOURCE_RANGES)
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
  if (type === 'LoadBalancer') return validateQualifiedName(fieldPath('spec.loadBalancerClass'), loadBalancerClass)
  return [fieldPath('spec.loadBalancerClass').forbidden(onlyLoadBalancer)]
}

function validateExternalTraffic(spec: ServiceSpec): FieldError[] {
  return [...validateExternalPolicy(spec), ...validateHealthPort(spec)]
}

function validateExternalPolicy(spec: ServiceSpec): FieldError[] {
  const { externalTrafficPolicy: policy = '' } = spec
  const field = fieldPath('spec.externalTrafficPolicy')
  if (isExternallyAccessible(spec)) return requiredOneOf(field, policy, trafficPolicies)
  return policy === '' ? [] : [field.invalid(asJson(policy), 'may only be set for externally-accessible services')]
}

function validateHealthPort(spec: ServiceSpec): FieldError[] {
  const { healthCheckNodePort: port = 0 } = spec
  const field = fieldPath('spec.healthCheckNodePort')
  if (needsHealthCheck(spec)) return port === 0 ? [field.required()] : field.check(port, portNumber)
  if (port === 0) return []
  const rule = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"
  return [field.invalid(port, rule)]
}

function validateInternalTraffic({ type = '', internalTrafficPolicy: policy }: ServiceSpec): FieldError[] {
  const field = fieldPath('spec.internalTrafficPolicy')
  if (policy !== undefined) return oneOf(field, policy, trafficPolicies)
  return ['ClusterIP', 'LoadBalancer', 'NodePort'].includes(type) ? [field.required()] : []
}

/** The status: the addresses of a load balancer. */
export function validateServiceStatus(
  { spec, status }: Service,
  old: Service,
  { isEnabled }: RuleContext,
): FieldError[] {
  const ingress = status?.loadBalancer?.ingress ?? []
  const field = fieldPath('status.loadBalancer.ingress')
  if (spec.type !== 'LoadBalancer' && ingress.length > 0) {
    return [field.forbidden("may only be used when `spec.type` is 'LoadBalancer'")]
  }
  const kept = (old.status?.loadBalancer?.ingress ?? []).flatMap(({ ip = '' }) => (ip === '' ? [] : [ip]))
  const rules = { strict: isEnabled('StrictIPCIDRValidation'), old: kept }
  return field.each(ingress, (path, one) => validateIngress(path, one, rules))
}

function validateIngress(
  path: FieldPath,
  { ip = '', ipMode, hostname = '' }: LoadBalancerIngress,
  rules: { readonly strict: boolean; readonly old: readonly string[] },
): FieldError[] {
  const isAddress = hostname !== '' && parseIp(hostname, { sloppy: true }) !== undefined
  return collectErrors(
    ip !== '' && validateLegacyIp(path.child('ip'), ip, rules),
    validateIpMode(path.child('ipMode'), ip, ipMode),
    hostname !== '' && path.child('hostname').check(hostname, dns1123Subdomain),
    isAddress && path.child('hostname').invalid(hostname, 'must be a DNS name, not an IP address'),
  )
}

function validateIpMode(path: FieldPath, ip: string, mode: string | undefined): FieldError[] {
  if (mode === undefined) return ip === '' ? [] : [path.required('must be specified when `ip` is set')]
  if (ip === '') return [path.forbidden('may not be specified when `ip` is not set')]
  return oneOf(path, mode, ['Proxy', 'VIP'])
}
