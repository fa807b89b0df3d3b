/** Ingress: which HTTP requests from outside go to which Service, by host and path. */
import {
  type HTTPIngressPath,
  type Ingress,
  type IngressBackend,
  Ingresses,
  type IngressRule,
  type IngressServiceBackend,
  type IngressSpec,
  type IngressTLS,
} from '#apis/networking/v1.ts'
import { ageColumn, nameColumn } from '#apiserver/registry/columns.ts'
import { defineResource, type Resource, type RuleContext } from '#apiserver/registry/resource.ts'
import { parseIp } from '#lib/cidr.ts'
import { compareText } from '#lib/go-text.ts'
import { validateLegacyIp } from '#meta/validation/addresses.ts'
import { asJson, child, type FieldError, index, invalid, notInSet, required } from '#meta/validation/field-error.ts'
import {
  dns1035Label,
  dns1123Label,
  dns1123Subdomain,
  portName,
  portNumber,
  wildcardDns1123Subdomain,
} from '#meta/validation/names.ts'
import { complaining } from '#meta/validation/rules.ts'
import { addressWarnings } from '#model/pod-spec/address-warnings.ts'
import { validateObjectName } from '#model/pod-spec/checks.ts'

import { validateTypedReference } from './typed-reference.ts'

/** How the class was named before there was a field for it. */
const CLASS_ANNOTATION = 'kubernetes.io/ingress.class'

/** What an update may keep because the old object had it already. */
interface Tolerance {
  readonly secretNames: boolean
  readonly wildcardRules: boolean
  /** Service names may begin with a digit. */
  readonly relaxedNames: boolean
}

export const ingress: Resource<Ingress> = defineResource<Ingress>({
  kind: Ingresses,
  metadataRules: { update: ['change', 'whole'] },
  storagePrefix: 'ingress',
  generation: 'spec',
  validate: (object, { isEnabled }) => [
    ...validateSpec(object.spec, {
      secretNames: false,
      wildcardRules: false,
      relaxedNames: isEnabled('RelaxedServiceNameValidation'),
    }),
    ...validateClassAnnotation(object),
  ],
  validateUpdate: (next, old, context) => validateSpec(next.spec, toleranceOf(old.spec, context)),
  warnings: ({ metadata, spec }, old) =>
    old === undefined && metadata.annotations?.[CLASS_ANNOTATION] !== undefined && spec.ingressClassName === undefined
      ? [`annotation "${CLASS_ANNOTATION}" is deprecated, please use 'spec.ingressClassName' instead`]
      : [],
  status: {
    keeps: ['spec'],
    validateUpdate: validateStatus,
    warnings: ({ status }) =>
      (status?.loadBalancer.ingress ?? []).flatMap(({ ip = '' }, at) =>
        ip === '' ? [] : addressWarnings(index('status.loadBalancer.ingress', at), ip),
      ),
  },
  columns: [
    nameColumn,
    { name: 'Class', value: ({ spec }) => spec.ingressClassName ?? '<none>' },
    { name: 'Hosts', value: ({ spec }) => hostsText(spec.rules) },
    { name: 'Address', value: addressText },
    { name: 'Ports', value: ({ spec }) => ((spec.tls ?? []).length > 0 ? '80, 443' : '80') },
    ageColumn,
  ],
})

function toleranceOf({ tls = [], rules = [], defaultBackend }: IngressSpec, { isEnabled }: RuleContext): Tolerance {
  const strict: Tolerance = { secretNames: false, wildcardRules: false, relaxedNames: false }
  const backends = [defaultBackend, ...rules.flatMap(({ http }) => (http?.paths ?? []).map(({ backend }) => backend))]
  const isRelaxed = ({ service }: IngressBackend = {}): boolean =>
    service !== undefined && dns1123Label(service.name).length === 0 && dns1035Label(service.name).length > 0
  return {
    secretNames: tls.some(({ secretName }) => validateObjectName('', secretName).length > 0),
    wildcardRules: rules.some((rule) => rule.host?.includes('*') && validatePaths('', rule, strict).length > 0),
    relaxedNames: isEnabled('RelaxedServiceNameValidation') || backends.some(isRelaxed),
  }
}

function validateClassAnnotation({ metadata, spec }: Ingress): FieldError[] {
  const annotation = metadata.annotations?.[CLASS_ANNOTATION]
  const name = spec.ingressClassName
  if (annotation === undefined || name === undefined || annotation === name) return []
  const detail = 'must match `ingressClassName` when both are specified'
  return [invalid(`annotations.${CLASS_ANNOTATION}`, annotation, detail)]
}

function validateSpec(spec: IngressSpec, tolerance: Tolerance): FieldError[] {
  const { rules = [], tls = [], defaultBackend, ingressClassName: className } = spec
  const errors: FieldError[] = []
  if (rules.length === 0 && defaultBackend === undefined) {
    errors.push(invalid('spec', spec.rules ?? null, 'either `defaultBackend` or `rules` must be specified'))
  }
  if (defaultBackend !== undefined)
    errors.push(...validateBackend('spec.defaultBackend', defaultBackend, tolerance.relaxedNames))
  return [
    ...errors,
    ...rules.flatMap((rule, at) => validateRule(index('spec.rules', at), rule, tolerance)),
    ...tls.flatMap((one, at) => validateTls(index('spec.tls', at), one, tolerance)),
    ...(className === undefined ? [] : complaining('spec.ingressClassName', className, dns1123Subdomain(className))),
  ]
}

function validateHost(field: string, host: string): FieldError[] {
  return complaining(field, host, host.includes('*') ? wildcardDns1123Subdomain(host) : dns1123Subdomain(host))
}

function validateNotIp(field: string, host: string): FieldError[] {
  return parseIp(host, { sloppy: true }) === undefined
    ? []
    : [invalid(field, host, 'must be a DNS name, not an IP address')]
}

function validateTls(path: string, { hosts = [], secretName }: IngressTLS, tolerance: Tolerance): FieldError[] {
  return [
    ...hosts.flatMap((host, at) => validateHost(index(child(path, 'hosts'), at), host)),
    ...(tolerance.secretNames ? [] : validateObjectName(child(path, 'secretName'), secretName)),
  ]
}

function validateRule(path: string, rule: IngressRule, tolerance: Tolerance): FieldError[] {
  const { host = '' } = rule
  const field = child(path, 'host')
  return [
    ...(host === '' ? [] : [...validateNotIp(field, host), ...validateHost(field, host)]),
    ...(host.includes('*') && tolerance.wildcardRules ? [] : validatePaths(path, rule, tolerance)),
  ]
}

function validatePaths(path: string, { http }: IngressRule, tolerance: Tolerance): FieldError[] {
  if (http === undefined) return []
  const field = child(path, 'http.paths')
  const paths = http.paths ?? []
  if (paths.length === 0) return [required(field)]
  return paths.flatMap((one, at) => validatePath(index(field, at), one, tolerance))
}

const unsafeParts = ['//', '/./', '/../', '%2f', '%2F']
const unsafeEnds = ['/..', '/.']

function validatePath(
  at: string,
  { path = '', pathType, backend }: HTTPIngressPath,
  tolerance: Tolerance,
): FieldError[] {
  const type = pathType as string | null | undefined
  // A pointer that is always written: absent reads as null.
  if (type === undefined || type === null) return [required(child(at, 'pathType'), 'pathType must be specified')]
  return [
    ...validatePathText(at, path, type),
    ...validateBackend(child(at, 'backend'), backend, tolerance.relaxedNames),
  ]
}

const pathTypes = ['Exact', 'Prefix', 'ImplementationSpecific']

function validatePathText(at: string, path: string, type: string): FieldError[] {
  if (!pathTypes.includes(type)) return [notInSet(child(at, 'pathType'), asJson(type), pathTypes)]
  const field = child(at, 'path')
  const absolute = path.startsWith('/') ? [] : [invalid(field, path, 'must be an absolute path')]
  if (type === 'ImplementationSpecific') return path === '' ? [] : absolute
  const parts = unsafeParts.filter((part) => path.includes(part))
  const ends = unsafeEnds.filter((end) => path.endsWith(end))
  return [
    ...absolute,
    ...parts.map((part) => invalid(field, path, `must not contain '${part}'`)),
    ...ends.map((end) => invalid(field, path, `cannot end with '${end}'`)),
  ]
}

function validateBackend(path: string, { resource, service }: IngressBackend, relaxedNames: boolean): FieldError[] {
  if (resource !== undefined && service !== undefined) {
    return [invalid(path, '', 'cannot set both resource and service backends')]
  }
  if (resource !== undefined) return validateTypedReference(child(path, 'resource'), resource)
  if (service === undefined) return [invalid(path, '', 'resource or service backend is required')]
  const field = child(path, 'service.name')
  const check = relaxedNames ? dns1123Label : dns1035Label
  return [
    ...(service.name === '' ? [required(field)] : complaining(field, service.name, check(service.name))),
    ...validateBackendPort(path, service),
  ]
}

function validateBackendPort(path: string, { port }: IngressServiceBackend): FieldError[] {
  const { name = '', number = 0 } = port ?? {}
  const field = child(path, 'service.port')
  if (name !== '' && number !== 0) return [invalid(path, '', 'cannot set both port name & port number')]
  if (name !== '') return complaining(child(field, 'name'), name, portName(name))
  if (number !== 0) return complaining(child(field, 'number'), number, portNumber(number))
  return [required(path, 'port name or number is required')]
}

function validateStatus({ status }: Ingress, old: Ingress, { isEnabled }: RuleContext): FieldError[] {
  const known = (old.status?.loadBalancer.ingress ?? []).flatMap(({ ip = '' }) => (ip === '' ? [] : [ip]))
  const strict = isEnabled('StrictIPCIDRValidation')
  return (status?.loadBalancer.ingress ?? []).flatMap(({ ip = '', hostname = '' }, at) => {
    const path = index('status.loadBalancer.ingress', at)
    const field = child(path, 'hostname')
    return [
      ...(ip === '' ? [] : validateLegacyIp(child(path, 'ip'), ip, { strict, old: known })),
      ...(hostname === '' ? [] : complaining(field, hostname, dns1123Subdomain(hostname))),
      ...validateNotIp(field, hostname),
    ]
  })
}

/** More would not fit a line. */
const SHOWN_HOSTS = 3

function hostsText(rules: readonly IngressRule[] = []): string {
  const hosts: string[] = []
  for (const { host = '' } of rules) {
    // Upstream counts every rule, those without a host included.
    if (hosts.length === SHOWN_HOSTS) return `${hosts.join(',')} + ${rules.length - SHOWN_HOSTS} more...`
    if (host !== '') hosts.push(host)
  }
  return hosts.join(',') || '*'
}

function addressText({ status }: Ingress): string {
  const names = (status?.loadBalancer.ingress ?? []).map(({ ip = '', hostname = '' }) => ip || hostname)
  return [...new Set(names.filter((name) => name !== ''))].sort(compareText).join(',')
}
