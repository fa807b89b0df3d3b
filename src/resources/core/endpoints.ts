/** The Endpoints resource: the addresses of a Service, the predecessor of EndpointSlices. */
import {
  type EndpointAddress,
  type EndpointPort,
  type Endpoints as EndpointsObject,
  Endpoints,
  type EndpointSubset,
} from '#apis/core/v1.ts'
import { ageColumn, nameColumn } from '#apiserver/registry/columns.ts'
import { defineResource, type Resource, type RuleContext } from '#apiserver/registry/resource.ts'
import { semanticEqual } from '#meta/object.ts'
import { validateLegacyIp } from '#meta/validation/addresses.ts'
import { collectErrors, type FieldError, fieldPath, type FieldPath } from '#meta/validation/field-path.ts'
import { dns1123Subdomain, portNumber } from '#meta/validation/names.ts'
import { requiredOneOf, validateDnsLabel, validateQualifiedName } from '#meta/validation/rules.ts'
import { validateEndpointIp } from '#model/addresses.ts'
import { addressWarnings } from '#model/pod-spec/warnings/addresses.ts'

/** Objects of the endpoints controller get no address warnings: they are valid, and large. */
const MANAGED_BY = 'endpoints.kubernetes.io/managed-by'
const CONTROLLER = 'endpoint-controller'

export const endpoints: Resource<EndpointsObject> = defineResource<EndpointsObject>({
  deprecation: 'v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice',
  kind: Endpoints,
  metadataRules: { update: ['change', 'whole'] },
  storagePrefix: 'services/endpoints',
  applyDefaults({ subsets = [] }) {
    for (const port of subsets.flatMap(({ ports = [] }) => ports)) port.protocol ||= 'TCP'
  },
  validate: validateSubsets,
  validateUpdate(next, old, context) {
    const errors = validateSubsets(next, context)
    // Faults that older releases accepted may stay.
    return errors.length > 0 && semanticEqual(next.subsets, old.subsets) ? [] : errors
  },
  warnings: ({ metadata, subsets = [] }) =>
    metadata.labels?.[MANAGED_BY] === CONTROLLER ? [] : subsets.flatMap(subsetWarnings),
  columns: [nameColumn, { name: 'Endpoints', value: addressesText }, ageColumn],
  putCreates: true,
})

const addressLists = ['addresses', 'notReadyAddresses'] as const

function subsetWarnings(subset: EndpointSubset, at: number): string[] {
  return addressLists.flatMap((list) =>
    (subset[list] ?? []).flatMap(({ ip }, place) =>
      addressWarnings(fieldPath('subsets').index(at).child(list).index(place).child('ip'), ip),
    ),
  )
}

function validateSubsets({ subsets = [] }: EndpointsObject, context: RuleContext): FieldError[] {
  const strict = context.isEnabled('StrictIPCIDRValidation')
  return fieldPath('subsets').each(subsets, (path, { addresses = [], notReadyAddresses = [], ports = [] }) => {
    const some = addresses.length + notReadyAddresses.length > 0
    const check = (list: string) => (address: EndpointAddress, place: number) =>
      validateAddress(path.child(list).index(place), address, strict)
    return collectErrors(
      !some && path.required('must specify `addresses` or `notReadyAddresses`'),
      addresses.flatMap(check('addresses')),
      notReadyAddresses.flatMap(check('notReadyAddresses')),
      path.child('ports').each(ports, (path, port) => validatePort(path, port, ports.length > 1)),
    )
  })
}

function validateAddress(
  path: FieldPath,
  { ip, hostname = '', nodeName }: EndpointAddress,
  strict: boolean,
): FieldError[] {
  const nameComplaints = nodeName === undefined ? [] : dns1123Subdomain(nodeName)
  return collectErrors(
    validateLegacyIp(path.child('ip'), ip, { strict }),
    hostname !== '' && validateDnsLabel(path.child('hostname'), hostname),
    path.child('nodeName').check(nodeName, () => nameComplaints, 'format=dns-label'),
    validateEndpointIp(path.child('ip'), ip),
  )
}

function validatePort(
  path: FieldPath,
  { name = '', port, protocol, appProtocol }: EndpointPort,
  named: boolean,
): FieldError[] {
  return collectErrors(
    name !== '' && validateDnsLabel(path.child('name'), name),
    name === '' && named && path.child('name').required(),
    path.child('port').check(port, portNumber, 'portNum'),
    requiredOneOf(path.child('protocol'), protocol, ['SCTP', 'TCP', 'UDP']),
    appProtocol !== undefined && validateQualifiedName(path.child('appProtocol'), appProtocol),
  )
}

/** The number that fits into a line. */
const SHOWN_ADDRESSES = 3

function addressesText({ subsets = [] }: EndpointsObject): string {
  if (subsets.length === 0) return '<none>'
  const all = subsets.flatMap(({ addresses = [], ports = [] }) => {
    const ips = addresses.map(({ ip }) => ip)
    // A headless Service may have no ports.
    if (ports.length === 0) return ips
    return ports.flatMap(({ port }) => ips.map((ip) => `${ip.includes(':') ? `[${ip}]` : ip}:${port}`))
  })
  const shown = all.slice(0, SHOWN_ADDRESSES).join(',')
  return all.length > SHOWN_ADDRESSES ? `${shown} + ${all.length - SHOWN_ADDRESSES} more...` : shown
}
