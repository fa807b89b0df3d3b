/** IPAddress: one address of the service ranges and the object that holds it. Its name is the address. */
import { type IPAddress, IPAddresses, type ParentReference } from '#apis/networking/v1.ts'
import { IPAddresses as BetaIPAddresses } from '#apis/networking/v1beta1.ts'
import { nameColumn } from '#apiserver/registry/columns.ts'
import { defineResource, type Resource } from '#apiserver/registry/resource.ts'
import { validateIp } from '#meta/validation/addresses.ts'
import { type FieldError, required } from '#meta/validation/field-error.ts'
import { dns1123Subdomain, pathSegmentName } from '#meta/validation/names.ts'
import { complaining, immutable } from '#meta/validation/rules.ts'

import { validateSegment } from './typed-reference.ts'

export const ipAddress: Resource<IPAddress> = defineResource<IPAddress>({
  kind: IPAddresses,
  metadataRules: { update: ['whole', 'change'] },
  otherVersions: [{ kind: BetaIPAddresses }],
  // Nothing can be added to an address.
  generateName: (base) => base,
  nameRule: (name) => validateIp('', name).map(({ detail }) => detail),
  validate: ({ spec }) => validateParent(spec.parentRef),
  validateUpdate: (next, old) => [
    ...validateParent(next.spec.parentRef),
    ...immutable('spec.parentRef', next.spec.parentRef, old.spec.parentRef),
  ],
  columns: [nameColumn, { name: 'ParentRef', value: ({ spec }) => parentText(spec.parentRef) }],
})

function validateParent(parent: ParentReference | undefined): FieldError[] {
  if (parent === undefined) return [required('spec.parentRef')]
  const { group = '', namespace = '', resource, name } = parent
  return [
    ...(group === '' ? [] : complaining('spec.parentRef.group', group, dns1123Subdomain(group))),
    ...validateSegment('spec.parentRef.resource', resource),
    ...validateSegment('spec.parentRef.name', name),
    ...(namespace === '' ? [] : complaining('spec.parentRef.namespace', namespace, pathSegmentName(namespace))),
  ]
}

function parentText(parent: ParentReference | undefined): string {
  if (parent === undefined) return '<none>'
  const { group = '', resource = '', namespace = '', name = '' } = parent
  const kind = (group === '' ? resource : `${resource}.${group}`).toLowerCase()
  return [kind, ...(namespace === '' ? [] : [namespace]), name].join('/')
}
