/** Validates the resource claim statuses of a pod: generated claims, and extended resources. */
import type { NodeAllocatableResourceClaimStatus, Pod, PodExtendedResourceClaimStatus, PodSpec } from '#apis/core/v1.ts'
import { createRepetition } from '#lib/repetition.ts'
import { parseQuantity, quantitySign } from '#meta/quantity.ts'
import { asJson, collectErrors, type FieldError, fieldPath, type FieldPath } from '#meta/validation/field-path.ts'
import { dns1123Subdomain } from '#meta/validation/names.ts'
import { requiredText, validateDnsLabel } from '#meta/validation/rules.ts'
import { isNativeResource } from '#model/pod-spec/containers/resource-names.ts'

export function validateClaimStatuses({ spec, status }: Pod): FieldError[] {
  const names = new Set((spec.resourceClaims ?? []).map(({ name }) => name))
  const isRepeated = createRepetition()
  const made = fieldPath('status.resourceClaimStatuses').each(
    status.resourceClaimStatuses,
    (path, { name, resourceClaimName }) => {
      const errors: FieldError[] = []
      if (!names.has(name)) {
        const complaint = 'must match the name of an entry in `spec.resourceClaims`'
        errors.push(path.child('name').invalid(name, complaint))
      }
      if (isRepeated(name)) errors.push(path.child('name').duplicate(name))
      if (resourceClaimName === undefined) return errors
      const complaints = dns1123Subdomain(resourceClaimName)
      return [...errors, ...path.child('resourceClaimName').check(resourceClaimName, () => complaints)]
    },
  )
  const known = new Set(
    [...(spec.resourceClaims ?? []), ...(status.resourceClaimStatuses ?? [])].map((one) => one.resourceClaimName),
  )
  return [
    ...made,
    ...validateExtended(fieldPath('status.extendedResourceClaimStatus'), status.extendedResourceClaimStatus, spec),
    ...fieldPath('status.nodeAllocatableResourceClaimStatuses').each(
      status.nodeAllocatableResourceClaimStatuses,
      (path, one) => validateAllocatable(path, one, known),
    ),
  ]
}

/** A claim generated for an extended resource that a device provides. */
function validateExtended(
  path: FieldPath,
  status: PodExtendedResourceClaimStatus | undefined,
  spec: PodSpec,
): FieldError[] {
  if (status === undefined) return []
  const field = path.child('requestMappings')
  const mappings = status.requestMappings ?? []
  const containers = new Map([...(spec.initContainers ?? []), ...(spec.containers ?? [])].map((one) => [one.name, one]))
  const isRepeated = createRepetition()
  const errors = mappings.length === 0 ? [field.required('at least one request mapping is required')] : []
  for (const [at, mapping] of mappings.entries()) {
    const { containerName, resourceName, requestName } = mapping
    const where = field.index(at)
    const container = containers.get(containerName)
    if (container === undefined) {
      const complaint = 'must match the name of an entry in spec.initContainers.name or spec.containers.name'
      errors.push(where.child('containerName').invalid(containerName, complaint))
    } else if (!Object.hasOwn(container.resources?.requests ?? {}, resourceName)) {
      const places = 'spec.initContainers.resources.requests or spec.containers.resources.requests'
      const complaint = `must match the extended resource name of an entry in ${places}`
      errors.push(where.child('resourceName').invalid(resourceName, complaint))
    }
    errors.push(...validateDnsLabel(path.child('requestName'), requestName))
    const all = JSON.stringify([containerName, resourceName, requestName])
    if (isRepeated(all)) {
      errors.push(...Object.entries(mapping).map(([name, value]) => where.child(name).duplicate(value)))
    }
  }
  const { resourceClaimName: name } = status
  const claim = path.child('resourceClaimName')
  return [...errors, ...(name === '' ? [claim.required()] : claim.check(name, dns1123Subdomain))]
}

function validateAllocatable(
  path: FieldPath,
  status: NodeAllocatableResourceClaimStatus,
  known: ReadonlySet<string | undefined>,
): FieldError[] {
  const { resourceClaimName: name, containers = [], resources } = status
  const field = path.child('resources')
  const amounts = Object.entries(resources ?? {})
  return collectErrors(
    requiredText(path.child('resourceClaimName'), name, 'must not be empty'),
    !known.has(name) && path.child('resourceClaimName').invalid(name, 'no mapping found in pod reference'),
    containers.length === 0 && path.child('containers').required('must not be empty'),
    amounts.length === 0 && field.required('must not be empty'),
    amounts.flatMap(([resource, amount]) =>
      collectErrors(
        !isNativeResource(resource) &&
          field.key(resource).invalid(asJson(resource), 'must be a node allocatable resource name'),
        quantitySign(parseQuantity(amount)) < 0 && field.key(resource).invalid(amount, 'must be non-negative'),
      ),
    ),
  )
}
