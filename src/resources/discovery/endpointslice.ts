/** EndpointSlice: some of the addresses behind a Service, of one family, with the ports they all have. */
import {
  type Endpoint,
  type EndpointHints,
  type EndpointPort,
  type EndpointSlice,
  EndpointSlices,
} from '#apis/discovery/v1.ts'
import { ageColumn, nameColumn } from '#apiserver/registry/columns.ts'
import { defineResource, type Resource, type RuleContext } from '#apiserver/registry/resource.ts'
import { semanticEqual } from '#meta/object.ts'
import { validateIp, validateLegacyIp } from '#meta/validation/addresses.ts'
import {
  asJson,
  child,
  duplicate,
  type FieldError,
  index,
  invalid,
  notInSet,
  required,
  tooMany,
} from '#meta/validation/field-error.ts'
import { type Check, dns1123Subdomain, labelValue } from '#meta/validation/names.ts'
import { complaining, immutable, validateFullyQualifiedDomainName, validateLabels } from '#meta/validation/rules.ts'
import { ipFamilyOf, validateEndpointIp } from '#model/addresses.ts'
import { addressWarnings } from '#model/pod-spec/address-warnings.ts'
import { validateDnsLabel, validateQualifiedName } from '#model/pod-spec/checks.ts'

const MAX_ENDPOINTS = 1000
const MAX_ADDRESSES = 100
const MAX_PORTS = 20_000
const MAX_TOPOLOGY_LABELS = 16
const MAX_HINTS = 8

const addressTypes = ['IPv4', 'IPv6', 'FQDN']
const protocols = ['TCP', 'UDP', 'SCTP']

/** What these controllers write is in order, and there is a lot of it. */
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
    // What an older release let pass may stay as it is.
    const tolerated = errors.length > 0 && semanticEqual(next.endpoints, old.endpoints)
    return [
      ...validateHead(next),
      ...(tolerated ? [] : errors),
      ...immutable('addressType', next.addressType, old.addressType).map((error) => ({
        ...error,
        badValue: asJson(next.addressType),
      })),
    ]
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

/** A field of v1beta1. A client that sends back what it has read keeps the node name that was in there. */
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
  const errors: FieldError[] = []
  if (addressType === '') errors.push(required('addressType'))
  else if (!addressTypes.includes(addressType)) {
    errors.push(notInSet('addressType', asJson(addressType), addressTypes))
  }
  return [...errors, ...validatePorts(ports ?? [])]
}

function validatePorts(ports: readonly EndpointPort[]): FieldError[] {
  if (ports.length > MAX_PORTS) return [tooMany('ports', ports.length, MAX_PORTS)]
  const seen = new Set<string>()
  return ports.flatMap(({ name = '', protocol, appProtocol }, at) => {
    const path = index('ports', at)
    const errors = name === '' ? [] : validateDnsLabel(child(path, 'name'), name)
    if (seen.has(name)) errors.push(duplicate(child(path, 'name'), name))
    seen.add(name)
    if (protocol === undefined) errors.push(required(child(path, 'protocol')))
    else if (!protocols.includes(protocol)) {
      errors.push(notInSet(child(path, 'protocol'), asJson(protocol), protocols))
    }
    if (appProtocol !== undefined) errors.push(...validateQualifiedName(child(path, 'appProtocol'), appProtocol))
    return errors
  })
}

function validateEndpoints({ endpoints, addressType }: EndpointSlice, context: RuleContext): FieldError[] {
  const list = endpoints ?? []
  if (list.length > MAX_ENDPOINTS) return [tooMany('endpoints', list.length, MAX_ENDPOINTS)]
  const check = addressChecks(context).get(addressType)
  return list.flatMap((endpoint, at) => validateEndpoint(index('endpoints', at), endpoint, check))
}

/** Complaints about one address; `list` is the field of all addresses, which upstream names for the wrong family. */
type AddressCheck = (field: string, address: string, list: string) => FieldError[]

function addressChecks({ isEnabled }: RuleContext): ReadonlyMap<string, AddressCheck> {
  const strict = isEnabled('StrictIPCIDRValidation')
  const ofFamily =
    (family: 'IPv4' | 'IPv6', isIp: (field: string, address: string) => FieldError[]): AddressCheck =>
    (field, address, list) => {
      const errors = isIp(field, address)
      if (errors.length > 0) return errors
      const stray = ipFamilyOf(address) === family ? [] : [invalid(list, address, `must be an ${family} address`)]
      return [...stray, ...validateEndpointIp(field, address)]
    }
  return new Map([
    ['IPv4', ofFamily('IPv4', (field, address) => validateLegacyIp(field, address, { strict }))],
    ['IPv6', ofFamily('IPv6', validateIp)],
    ['FQDN', validateFullyQualifiedDomainName],
  ])
}

function validateEndpoint(path: string, endpoint: Endpoint, check: AddressCheck | undefined): FieldError[] {
  const { nodeName, deprecatedTopology, hostname, hints } = endpoint
  const topology = child(path, 'deprecatedTopology')
  const labels = Object.keys(deprecatedTopology ?? {}).length
  return [
    ...validateAddresses(child(path, 'addresses'), endpoint.addresses ?? [], check),
    ...(nodeName === undefined ? [] : complaining(child(path, 'nodeName'), nodeName, dns1123Subdomain(nodeName))),
    ...(labels > MAX_TOPOLOGY_LABELS ? [tooMany(topology, labels, MAX_TOPOLOGY_LABELS)] : []),
    ...validateLabels(topology, deprecatedTopology),
    ...(hostname === undefined ? [] : validateDnsLabel(child(path, 'hostname'), hostname)),
    ...(hints === undefined ? [] : validateHints(child(path, 'hints'), hints)),
  ]
}

function validateAddresses(field: string, addresses: readonly string[], check: AddressCheck | undefined): FieldError[] {
  const count = addresses.length
  const errors: FieldError[] = []
  if (count === 0) errors.push(required(field, 'must contain at least 1 address'))
  if (count > MAX_ADDRESSES) errors.push(tooMany(field, count, MAX_ADDRESSES))
  if (check === undefined) return errors
  return [...errors, ...addresses.flatMap((address, at) => check(index(field, at), address, field))]
}

/** Too many of one sort end the judgement. */
function validateHints(path: string, { forZones = [], forNodes = [] }: EndpointHints): FieldError[] {
  if (forZones.length > MAX_HINTS) return [tooMany(child(path, 'forZones'), forZones.length, MAX_HINTS)]
  const zones = validateNames(child(path, 'forZones'), forZones, labelValue)
  if (forNodes.length > MAX_HINTS) return [...zones, tooMany(child(path, 'forNodes'), forNodes.length, MAX_HINTS)]
  return [...zones, ...validateNames(child(path, 'forNodes'), forNodes, dns1123Subdomain)]
}

function validateNames(field: string, named: readonly { readonly name: string }[], check: Check): FieldError[] {
  const seen = new Set<string>()
  return named.flatMap(({ name }, at) => {
    const path = child(index(field, at), 'name')
    const errors = seen.has(name) ? [duplicate(path, name)] : []
    seen.add(name)
    return [...errors, ...complaining(path, name, check(name))]
  })
}

function ipWarnings({ endpoints }: EndpointSlice): string[] {
  return (endpoints ?? []).flatMap(({ addresses }, at) =>
    (addresses ?? []).flatMap((address, place) =>
      addressWarnings(index(child(index('endpoints', at), 'addresses'), place), address),
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
