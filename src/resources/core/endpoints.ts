/** Endpoints: the addresses behind a Service as they were before EndpointSlices. */
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
import { child, type FieldError, index, required } from '#meta/validation/field-error.ts'
import { dns1123Subdomain, portNumber } from '#meta/validation/names.ts'
import { complaining } from '#meta/validation/rules.ts'
import { validateEndpointIp } from '#model/addresses.ts'
import { addressWarnings } from '#model/pod-spec/address-warnings.ts'
import { requiredOneOf, validateDnsLabel, validateQualifiedName } from '#model/pod-spec/checks.ts'

/** What the endpoints controller writes is in order, and there is a lot of it. */
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
    // What an older release let pass may stay as it is.
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
      addressWarnings(`${index(child(index('subsets', at), list), place)}.ip`, ip),
    ),
  )
}

function validateSubsets({ subsets = [] }: EndpointsObject, context: RuleContext): FieldError[] {
  const strict = context.isEnabled('StrictIPCIDRValidation')
  return subsets.flatMap(({ addresses = [], notReadyAddresses = [], ports = [] }, at) => {
    const path = index('subsets', at)
    const some = addresses.length + notReadyAddresses.length > 0
    const check = (list: string) => (address: EndpointAddress, place: number) =>
      validateAddress(index(child(path, list), place), address, strict)
    return [
      ...(some ? [] : [required(path, 'must specify `addresses` or `notReadyAddresses`')]),
      ...addresses.flatMap(check('addresses')),
      ...notReadyAddresses.flatMap(check('notReadyAddresses')),
      ...ports.flatMap((port, place) => validatePort(index(child(path, 'ports'), place), port, ports.length > 1)),
    ]
  })
}

function validateAddress(
  path: string,
  { ip, hostname = '', nodeName }: EndpointAddress,
  strict: boolean,
): FieldError[] {
  const nameComplaints = nodeName === undefined ? [] : dns1123Subdomain(nodeName)
  return [
    ...validateLegacyIp(child(path, 'ip'), ip, { strict }),
    ...(hostname === '' ? [] : validateDnsLabel(child(path, 'hostname'), hostname)),
    ...complaining(child(path, 'nodeName'), nodeName, nameComplaints, 'format=dns-label'),
    ...validateEndpointIp(child(path, 'ip'), ip),
  ]
}

function validatePort(
  path: string,
  { name = '', port, protocol, appProtocol }: EndpointPort,
  named: boolean,
): FieldError[] {
  return [
    ...(name === '' ? [] : validateDnsLabel(child(path, 'name'), name)),
    ...(name === '' && named ? [required(child(path, 'name'))] : []),
    ...complaining(child(path, 'port'), port, portNumber(port), 'portNum'),
    ...requiredOneOf(child(path, 'protocol'), protocol, ['SCTP', 'TCP', 'UDP']),
    ...(appProtocol === undefined ? [] : validateQualifiedName(child(path, 'appProtocol'), appProtocol)),
  ]
}

/** More would not fit a line. */
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
