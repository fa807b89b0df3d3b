/** The EndpointSlice resource: some addresses of a Service, of one family, with their common ports. */
import {
  type Endpoint,
  type EndpointHints,
  type EndpointPort,
  type EndpointSlice,
  EndpointSlices,
} from '#apis/discovery/v1.ts'
import { ageColumn, nameColumn } from '#apiserver/registry/columns.ts'
import { defineResource, type Resource, type RuleContext } from '#apiserver/registry/resource.ts'
import { createRepetition } from '#lib/repetition.ts'
import { semanticEqual } from '#meta/object.ts'
import { validateIp, validateLegacyIp } from '#meta/validation/addresses.ts'
import { asJson, collectErrors, type FieldError, fieldPath, type FieldPath } from '#meta/validation/field-path.ts'
import { type Check, dns1123Subdomain, labelValue } from '#meta/validation/names.ts'
import {
  immutable,
  oneOfSet,
  requiredOneOfSet,
  validateDnsLabel,
  validateFullyQualifiedDomainName,
  validateLabels,
  validateQualifiedName,
} from '#meta/validation/rules.ts'
import { ipFamilyOf, validateEndpointIp } from '#model/addresses.ts'
import { addressWarnings } from '#model/pod-spec/warnings/addresses.ts'

const MAX_ENDPOINTS = 1000
const MAX_ADDRESSES = 100
const MAX_PORTS = 20_000
const MAX_TOPOLOGY_LABELS = 16
const MAX_HINTS = 8

const addressTypes = ['IPv4', 'IPv6', 'FQDN']
const protocols = ['TCP', 'UDP', 'SCTP']

/** Objects of these controllers get no address warnings: they are valid, and large. */
const MANAGED_BY = 'endpointslice.kubernetes.io/managed-by'
const controllers = ['endpointslice-controller.k8s.io', 'endpointslicemirroring-controller.k8s.io']

export const endpointSlice: Resource<EndpointSlice> = defineResource<EndpointSlice>({
  kind: EndpointSlices,
  metadataRules: { update: ['whole'] },
  generation: (next, old) =>
    !semanticEqual(contentOf(next), contentOf(old)) || !semanticEqual(next.metadata.labels, old.metadata.labels),
  applyDefaults({ ports }) {
    for (const port of ports ?? []) {
      port.name ??= ''
      port.protocol ??= 'TCP'
    }
  },
  prepareCreate(object, context) {
    dropNodeHints(object, undefined, context)
    dropTopology(object, undefined)
  },
  prepareUpdate(next, old, context) {
    dropNodeHints(next, old, context)
    if (!semanticEqual(next.endpoints, old.endpoints)) dropTopology(next, old)
  },
  validate: (object, context) => [...validateHead(object), ...validateEndpoints(object, context)],
  validateUpdate(next, old, context) {
    const errors = validateEndpoints(next, context)
    // Faults that older releases accepted may stay.
    const tolerated = errors.length > 0 && semanticEqual(next.endpoints, old.endpoints)
    return collectErrors(
      validateHead(next),
      !tolerated && errors,
      immutable(fieldPath('addressType'), next.addressType, old.addressType).map((error) => ({
        ...error,
        badValue: asJson(next.addressType),
      })),
    )
  },
  warnings: (next, old) => [
    ...(old === undefined && next.addressType === 'FQDN' ? ['spec.addressType: FQDN endpoints are deprecated'] : []),
    ...(controllers.includes(next.metadata.labels?.[MANAGED_BY] ?? '') ? [] : ipWarnings(next)),
  ],
  columns: [
    nameColumn,
    { name: 'AddressType', value: ({ addressType }) => addressType },
    { name: 'Ports', value: ({ ports }) => listText((ports ?? []).map(portText)) },
    { name: 'Endpoints', value: ({ endpoints }) => listText(addressesOf(endpoints)) },
    ageColumn,
  ],
})

function contentOf({ addressType, endpoints, ports }: EndpointSlice): object {
  return { addressType, endpoints, ports }
}

function dropNodeHints(next: EndpointSlice, old: EndpointSlice | undefined, { isEnabled }: RuleContext): void {
  if (isEnabled('PreferSameTrafficDistribution')) return
  if (old?.endpoints?.some(({ hints }) => hints?.forNodes !== undefined)) return
  for (const { hints } of next.endpoints ?? []) delete hints?.forNodes
}

const HOSTNAME_LABEL = 'kubernetes.io/hostname'

/** A field of v1beta1. A client that sends back a read object keeps its node name. */
function dropTopology(next: EndpointSlice, old: EndpointSlice | undefined): void {
  const nodeOf = ({ deprecatedTopology }: Endpoint): string => deprecatedTopology?.[HOSTNAME_LABEL] ?? ''
  const known = new Set((old?.endpoints ?? []).map(nodeOf))
  for (const endpoint of next.endpoints ?? []) {
    const node = nodeOf(endpoint)
    const keeps = endpoint.nodeName === undefined && known.has(node) && dns1123Subdomain(node).length === 0
    if (node !== '' && keeps) endpoint.nodeName = node
    delete endpoint.deprecatedTopology
  }
}

function validateHead({ addressType, ports }: EndpointSlice): FieldError[] {
  return collectErrors(
    addressType === ''
      ? fieldPath('addressType').required()
      : oneOfSet(fieldPath('addressType'), addressType, addressTypes),
    validatePorts(ports ?? []),
  )
}

function validatePorts(ports: readonly EndpointPort[]): FieldError[] {
  if (ports.length > MAX_PORTS) return [fieldPath('ports').tooMany(ports.length, MAX_PORTS)]
  const isRepeated = createRepetition()
  return fieldPath('ports').each(ports, (path, { name = '', protocol, appProtocol }) =>
    collectErrors(
      name !== '' && validateDnsLabel(path.child('name'), name),
      isRepeated(name) && path.child('name').duplicate(name),
      requiredOneOfSet(path.child('protocol'), protocol, protocols),
      appProtocol !== undefined && validateQualifiedName(path.child('appProtocol'), appProtocol),
    ),
  )
}

function validateEndpoints({ endpoints, addressType }: EndpointSlice, context: RuleContext): FieldError[] {
  const list = endpoints ?? []
  if (list.length > MAX_ENDPOINTS) return [fieldPath('endpoints').tooMany(list.length, MAX_ENDPOINTS)]
  const check = addressChecks(context).get(addressType)
  return fieldPath('endpoints').each(list, (path, endpoint) => validateEndpoint(path, endpoint, check))
}

/** Errors of one address; `list` is the field of all addresses, which upstream uses for a wrong family. */
type AddressCheck = (path: FieldPath, address: string, list: FieldPath) => FieldError[]

function addressChecks({ isEnabled }: RuleContext): ReadonlyMap<string, AddressCheck> {
  const strict = isEnabled('StrictIPCIDRValidation')
  const ofFamily =
    (family: 'IPv4' | 'IPv6', isIp: (path: FieldPath, address: string) => FieldError[]): AddressCheck =>
    (field, address, list) => {
      const errors = isIp(field, address)
      if (errors.length > 0) return errors
      const stray = ipFamilyOf(address) === family ? [] : [list.invalid(address, `must be an ${family} address`)]
      return [...stray, ...validateEndpointIp(field, address)]
    }
  return new Map([
    ['IPv4', ofFamily('IPv4', (field, address) => validateLegacyIp(field, address, { strict }))],
    ['IPv6', ofFamily('IPv6', validateIp)],
    ['FQDN', validateFullyQualifiedDomainName],
  ])
}

function validateEndpoint(path: FieldPath, endpoint: Endpoint, check: AddressCheck | undefined): FieldError[] {
  const { nodeName, deprecatedTopology, hostname, hints } = endpoint
  const topology = path.child('deprecatedTopology')
  const labels = Object.keys(deprecatedTopology ?? {}).length
  return collectErrors(
    validateAddresses(path.child('addresses'), endpoint.addresses ?? [], check),
    nodeName !== undefined && path.child('nodeName').check(nodeName, dns1123Subdomain),
    labels > MAX_TOPOLOGY_LABELS && topology.tooMany(labels, MAX_TOPOLOGY_LABELS),
    validateLabels(topology, deprecatedTopology),
    hostname !== undefined && validateDnsLabel(path.child('hostname'), hostname),
    hints !== undefined && validateHints(path.child('hints'), hints),
  )
}

function validateAddresses(
  path: FieldPath,
  addresses: readonly string[],
  check: AddressCheck | undefined,
): FieldError[] {
  const count = addresses.length
  const errors: FieldError[] = []
  if (count === 0) errors.push(path.required('must contain at least 1 address'))
  if (count > MAX_ADDRESSES) errors.push(path.tooMany(count, MAX_ADDRESSES))
  if (check === undefined) return errors
  return [...errors, ...path.each(addresses, (itemPath, address) => check(itemPath, address, path))]
}

/** Too many errors of one kind end the validation. */
function validateHints(path: FieldPath, { forZones = [], forNodes = [] }: EndpointHints): FieldError[] {
  if (forZones.length > MAX_HINTS) return [path.child('forZones').tooMany(forZones.length, MAX_HINTS)]
  const zones = validateNames(path.child('forZones'), forZones, labelValue)
  if (forNodes.length > MAX_HINTS) return [...zones, path.child('forNodes').tooMany(forNodes.length, MAX_HINTS)]
  return [...zones, ...validateNames(path.child('forNodes'), forNodes, dns1123Subdomain)]
}

function validateNames(field: FieldPath, named: readonly { readonly name: string }[], check: Check): FieldError[] {
  const isRepeated = createRepetition()
  return field.each(named, (itemPath, { name }) => {
    const path = itemPath.child('name')
    const errors = isRepeated(name) ? [path.duplicate(name)] : []
    return [...errors, ...path.check(name, check)]
  })
}

function ipWarnings({ endpoints }: EndpointSlice): string[] {
  return (endpoints ?? []).flatMap(({ addresses }, at) =>
    (addresses ?? []).flatMap((address, place) =>
      addressWarnings(fieldPath('endpoints').index(at).child('addresses').index(place), address),
    ),
  )
}

function addressesOf(endpoints: readonly Endpoint[] | null): string[] {
  return (endpoints ?? []).flatMap(({ addresses }) => addresses ?? [])
}

const SHOWN = 3

function listText(texts: readonly string[]): string {
  const shown = texts.slice(0, SHOWN).join(',')
  if (texts.length > SHOWN) return `${shown} + ${texts.length - SHOWN} more...`
  return shown === '' ? '<unset>' : shown
}

function portText({ port, name }: EndpointPort): string {
  return port === undefined ? (name ?? '*') : String(port)
}
