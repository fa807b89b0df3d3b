/** The Ingress resource: routes HTTP requests from outside to Services, by host and path. */
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
import { compareText } from '#lib/go/text.ts'
import { parseIp } from '#lib/net/cidr.ts'
import { validateLegacyIp } from '#meta/validation/addresses.ts'
import { asJson, collectErrors, type FieldError, fieldPath, type FieldPath } from '#meta/validation/field-path.ts'
import {
  dns1035Label,
  dns1123Label,
  dns1123Subdomain,
  portName,
  portNumber,
  wildcardDns1123Subdomain,
} from '#meta/validation/names.ts'
import { validateObjectName } from '#meta/validation/rules.ts'
import { addressWarnings } from '#model/pod-spec/warnings/addresses.ts'

import { validateTypedReference } from './typed-reference.ts'

/** The annotation that preceded the class field. */
const CLASS_ANNOTATION = 'kubernetes.io/ingress.class'

/** Faults that an update may keep, because the old object has them. */
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
        ip === '' ? [] : addressWarnings(fieldPath('status.loadBalancer.ingress').index(at), ip),
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
    secretNames: tls.some(({ secretName }) => validateObjectName(fieldPath(''), secretName).length > 0),
    wildcardRules: rules.some(
      (rule) => rule.host?.includes('*') && validatePaths(fieldPath(''), rule, strict).length > 0,
    ),
    relaxedNames: isEnabled('RelaxedServiceNameValidation') || backends.some(isRelaxed),
  }
}

function validateClassAnnotation({ metadata, spec }: Ingress): FieldError[] {
  const annotation = metadata.annotations?.[CLASS_ANNOTATION]
  const name = spec.ingressClassName
  if (annotation === undefined || name === undefined || annotation === name) return []
  const detail = 'must match `ingressClassName` when both are specified'
  return [fieldPath(`annotations.${CLASS_ANNOTATION}`).invalid(annotation, detail)]
}

function validateSpec(spec: IngressSpec, tolerance: Tolerance): FieldError[] {
  const { rules = [], tls = [], defaultBackend, ingressClassName: className } = spec
  return collectErrors(
    rules.length === 0 &&
      defaultBackend === undefined &&
      fieldPath('spec').invalid(spec.rules ?? null, 'either `defaultBackend` or `rules` must be specified'),
    defaultBackend !== undefined &&
      validateBackend(fieldPath('spec.defaultBackend'), defaultBackend, tolerance.relaxedNames),
    fieldPath('spec.rules').each(rules, (path, rule) => validateRule(path, rule, tolerance)),
    fieldPath('spec.tls').each(tls, (path, one) => validateTls(path, one, tolerance)),
    className !== undefined && fieldPath('spec.ingressClassName').check(className, dns1123Subdomain),
  )
}

function validateHost(path: FieldPath, host: string): FieldError[] {
  return path.check(host, () => (host.includes('*') ? wildcardDns1123Subdomain(host) : dns1123Subdomain(host)))
}

function validateNotIp(path: FieldPath, host: string): FieldError[] {
  return parseIp(host, { sloppy: true }) === undefined
    ? []
    : [path.invalid(host, 'must be a DNS name, not an IP address')]
}

function validateTls(path: FieldPath, { hosts = [], secretName }: IngressTLS, tolerance: Tolerance): FieldError[] {
  return collectErrors(
    path.child('hosts').each(hosts, validateHost),
    !tolerance.secretNames && validateObjectName(path.child('secretName'), secretName),
  )
}

function validateRule(path: FieldPath, rule: IngressRule, tolerance: Tolerance): FieldError[] {
  const { host = '' } = rule
  const field = path.child('host')
  return collectErrors(
    host !== '' && [...validateNotIp(field, host), ...validateHost(field, host)],
    (!host.includes('*') || !tolerance.wildcardRules) && validatePaths(path, rule, tolerance),
  )
}

function validatePaths(path: FieldPath, { http }: IngressRule, tolerance: Tolerance): FieldError[] {
  if (http === undefined) return []
  const field = path.child('http.paths')
  const paths = http.paths ?? []
  if (paths.length === 0) return [field.required()]
  return field.each(paths, (path, one) => validatePath(path, one, tolerance))
}

const unsafeParts = ['//', '/./', '/../', '%2f', '%2F']
const unsafeEnds = ['/..', '/.']

function validatePath(
  at: FieldPath,
  { path = '', pathType, backend }: HTTPIngressPath,
  tolerance: Tolerance,
): FieldError[] {
  const type = pathType as string | null | undefined
  // A pointer that is always written: an absent value is null.
  if (type === undefined || type === null) return [at.child('pathType').required('pathType must be specified')]
  return [...validatePathText(at, path, type), ...validateBackend(at.child('backend'), backend, tolerance.relaxedNames)]
}

const pathTypes = ['Exact', 'Prefix', 'ImplementationSpecific']

function validatePathText(at: FieldPath, path: string, type: string): FieldError[] {
  if (!pathTypes.includes(type)) return [at.child('pathType').notInSet(asJson(type), pathTypes)]
  const field = at.child('path')
  const absolute = path.startsWith('/') ? [] : [field.invalid(path, 'must be an absolute path')]
  if (type === 'ImplementationSpecific') return path === '' ? [] : absolute
  const parts = unsafeParts.filter((part) => path.includes(part))
  const ends = unsafeEnds.filter((end) => path.endsWith(end))
  return [
    ...absolute,
    ...parts.map((part) => field.invalid(path, `must not contain '${part}'`)),
    ...ends.map((end) => field.invalid(path, `cannot end with '${end}'`)),
  ]
}

function validateBackend(path: FieldPath, { resource, service }: IngressBackend, relaxedNames: boolean): FieldError[] {
  if (resource !== undefined && service !== undefined) {
    return [path.invalid('', 'cannot set both resource and service backends')]
  }
  if (resource !== undefined) return validateTypedReference(path.child('resource'), resource)
  if (service === undefined) return [path.invalid('', 'resource or service backend is required')]
  const field = path.child('service.name')
  const check = relaxedNames ? dns1123Label : dns1035Label
  return [
    ...(service.name === '' ? [field.required()] : field.check(service.name, check)),
    ...validateBackendPort(path, service),
  ]
}

function validateBackendPort(path: FieldPath, { port }: IngressServiceBackend): FieldError[] {
  const { name = '', number = 0 } = port ?? {}
  const field = path.child('service.port')
  if (name !== '' && number !== 0) return [path.invalid('', 'cannot set both port name & port number')]
  if (name !== '') return field.child('name').check(name, portName)
  if (number !== 0) return field.child('number').check(number, portNumber)
  return [path.required('port name or number is required')]
}

function validateStatus({ status }: Ingress, old: Ingress, { isEnabled }: RuleContext): FieldError[] {
  const known = (old.status?.loadBalancer.ingress ?? []).flatMap(({ ip = '' }) => (ip === '' ? [] : [ip]))
  const strict = isEnabled('StrictIPCIDRValidation')
  return fieldPath('status.loadBalancer.ingress').each(
    status?.loadBalancer.ingress,
    (path, { ip = '', hostname = '' }) => {
      const field = path.child('hostname')
      return collectErrors(
        ip !== '' && validateLegacyIp(path.child('ip'), ip, { strict, old: known }),
        hostname !== '' && field.check(hostname, dns1123Subdomain),
        validateNotIp(field, hostname),
      )
    },
  )
}

/** The number that fits into a line. */
const SHOWN_HOSTS = 3

function hostsText(rules: readonly IngressRule[] = []): string {
  const hosts: string[] = []
  for (const { host = '' } of rules) {
    // Upstream counts every rule, including those without a host.
    if (hosts.length === SHOWN_HOSTS) return `${hosts.join(',')} + ${rules.length - SHOWN_HOSTS} more...`
    if (host !== '') hosts.push(host)
  }
  return hosts.join(',') || '*'
}

function addressText({ status }: Ingress): string {
  const names = (status?.loadBalancer.ingress ?? []).map(({ ip = '', hostname = '' }) => ip || hostname)
  return [...new Set(names.filter((name) => name !== ''))].sort(compareText).join(',')
}
