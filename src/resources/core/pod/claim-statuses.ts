/** What is told of the devices a pod has claimed: which claims were made for it, and what they give it. */
import type { NodeAllocatableResourceClaimStatus, Pod, PodExtendedResourceClaimStatus, PodSpec } from '#apis/core/v1.ts'
import { parseQuantity, quantitySign } from '#meta/quantity.ts'
import {
  asJson,
  child,
  duplicate,
  type FieldError,
  index,
  invalid,
  key,
  required,
} from '#meta/validation/field-error.ts'
import { dns1123Subdomain } from '#meta/validation/names.ts'
import { complaining } from '#meta/validation/rules.ts'
import { requiredText, validateDnsLabel } from '#model/pod-spec/checks.ts'
import { isNativeResource } from '#model/pod-spec/resource-names.ts'

export function validateClaimStatuses({ spec, status }: Pod): FieldError[] {
  const names = new Set((spec.resourceClaims ?? []).map(({ name }) => name))
  const seen = new Set<string>()
  const made = (status.resourceClaimStatuses ?? []).flatMap(({ name, resourceClaimName }, at) => {
    const path = index('status.resourceClaimStatuses', at)
    const errors: FieldError[] = []
    if (!names.has(name)) {
      const complaint = 'must match the name of an entry in `spec.resourceClaims`'
      errors.push(invalid(child(path, 'name'), name, complaint))
    }
    if (seen.has(name)) errors.push(duplicate(child(path, 'name'), name))
    seen.add(name)
    if (resourceClaimName === undefined) return errors
    const complaints = dns1123Subdomain(resourceClaimName)
    return [...errors, ...complaining(child(path, 'resourceClaimName'), resourceClaimName, complaints)]
  })
  const known = new Set(
    [...(spec.resourceClaims ?? []), ...(status.resourceClaimStatuses ?? [])].map((one) => one.resourceClaimName),
  )
  return [
    ...made,
    ...validateExtended('status.extendedResourceClaimStatus', status.extendedResourceClaimStatus, spec),
    ...(status.nodeAllocatableResourceClaimStatuses ?? []).flatMap((one, at) =>
      validateAllocatable(index('status.nodeAllocatableResourceClaimStatuses', at), one, known),
    ),
  ]
}

/** A claim made because the pod requests an extended resource that is a device. */
function validateExtended(
  path: string,
  status: PodExtendedResourceClaimStatus | undefined,
  spec: PodSpec,
): FieldError[] {
  if (status === undefined) return []
  const field = child(path, 'requestMappings')
  const mappings = status.requestMappings ?? []
  const containers = new Map([...(spec.initContainers ?? []), ...(spec.containers ?? [])].map((one) => [one.name, one]))
  const seen = new Set<string>()
  const errors = mappings.length === 0 ? [required(field, 'at least one request mapping is required')] : []
  for (const [at, mapping] of mappings.entries()) {
    const { containerName, resourceName, requestName } = mapping
    const where = index(field, at)
    const container = containers.get(containerName)
    if (container === undefined) {
      const complaint = 'must match the name of an entry in spec.initContainers.name or spec.containers.name'
      errors.push(invalid(child(where, 'containerName'), containerName, complaint))
    } else if (!Object.hasOwn(container.resources?.requests ?? {}, resourceName)) {
      const places = 'spec.initContainers.resources.requests or spec.containers.resources.requests'
      const complaint = `must match the extended resource name of an entry in ${places}`
      errors.push(invalid(child(where, 'resourceName'), resourceName, complaint))
    }
    errors.push(...validateDnsLabel(child(path, 'requestName'), requestName))
    const all = JSON.stringify([containerName, resourceName, requestName])
    if (seen.has(all)) {
      errors.push(...Object.entries(mapping).map(([name, value]) => duplicate(child(where, name), value)))
    }
    seen.add(all)
  }
  const { resourceClaimName: name } = status
  const claim = child(path, 'resourceClaimName')
  return [...errors, ...(name === '' ? [required(claim)] : complaining(claim, name, dns1123Subdomain(name)))]
}

function validateAllocatable(
  path: string,
  status: NodeAllocatableResourceClaimStatus,
  known: ReadonlySet<string | undefined>,
): FieldError[] {
  const { resourceClaimName: name, containers = [], resources } = status
  const field = child(path, 'resources')
  const amounts = Object.entries(resources ?? {})
  return [
    ...requiredText(child(path, 'resourceClaimName'), name, 'must not be empty'),
    ...(known.has(name) ? [] : [invalid(child(path, 'resourceClaimName'), name, 'no mapping found in pod reference')]),
    ...(containers.length === 0 ? [required(child(path, 'containers'), 'must not be empty')] : []),
    ...(amounts.length === 0 ? [required(field, 'must not be empty')] : []),
    ...amounts.flatMap(([resource, amount]) => [
      ...(isNativeResource(resource)
        ? []
        : [invalid(key(field, resource), asJson(resource), 'must be a node allocatable resource name')]),
      ...(quantitySign(parseQuantity(amount)) < 0
        ? [invalid(key(field, resource), amount, 'must be non-negative')]
        : []),
    ]),
  ]
}
