/** The IPAddress resource: one address of the service ranges and the object that owns it. Its name is the address. */
import { type IPAddress, IPAddresses, type ParentReference } from '#apis/networking/v1.ts'
import { IPAddresses as BetaIPAddresses } from '#apis/networking/v1beta1.ts'
import { nameColumn } from '#apiserver/registry/columns.ts'
import { defineResource, type Resource } from '#apiserver/registry/resource.ts'
import { validateIp } from '#meta/validation/addresses.ts'
import { collectErrors, type FieldError, fieldPath } from '#meta/validation/field-path.ts'
import { dns1123Subdomain, pathSegmentName } from '#meta/validation/names.ts'
import { immutable } from '#meta/validation/rules.ts'

import { validateSegment } from './typed-reference.ts'

export const ipAddress: Resource<IPAddress> = defineResource<IPAddress>({
  kind: IPAddresses,
  metadataRules: { update: ['whole', 'change'] },
  otherVersions: [{ kind: BetaIPAddresses }],
  // An address cannot have a suffix, so generateName is rejected.
  generateName: (base) => base,
  nameRule: (name) => validateIp(fieldPath(''), name).map(({ detail }) => detail),
  validate: ({ spec }) => validateParent(spec.parentRef),
  validateUpdate: (next, old) => [
    ...validateParent(next.spec.parentRef),
    ...immutable(fieldPath('spec.parentRef'), next.spec.parentRef, old.spec.parentRef),
  ],
  columns: [nameColumn, { name: 'ParentRef', value: ({ spec }) => parentText(spec.parentRef) }],
})

function validateParent(parent: ParentReference | undefined): FieldError[] {
  if (parent === undefined) return [fieldPath('spec.parentRef').required()]
  const { group = '', namespace = '', resource, name } = parent
  return collectErrors(
    group !== '' && fieldPath('spec.parentRef.group').check(group, dns1123Subdomain),
    validateSegment(fieldPath('spec.parentRef.resource'), resource),
    validateSegment(fieldPath('spec.parentRef.name'), name),
    namespace !== '' && fieldPath('spec.parentRef.namespace').check(namespace, pathSegmentName),
  )
}

function parentText(parent: ParentReference | undefined): string {
  if (parent === undefined) return '<none>'
  const { group = '', resource = '', namespace = '', name = '' } = parent
  const kind = (group === '' ? resource : `${resource}.${group}`).toLowerCase()
  return [kind, ...(namespace === '' ? [] : [namespace]), name].join('/')
}
