/** Checks that a namespace has the label that admin access to devices requires. */
import { Namespaces } from '#apis/core/v1.ts'
import type { ResourceClaimSpec } from '#apis/resource/v1.ts'
import type { WriteContext } from '#apiserver/registry/resource.ts'
import type { KubeObject } from '#meta/object.ts'
import { type FieldError, fieldPath, type FieldPath } from '#meta/validation/field-path.ts'

const LABEL = 'resource.kubernetes.io/admin-access'

/** The first request with admin access, or undefined. */
export function adminAccessField({ devices }: ResourceClaimSpec): FieldPath | undefined {
  const at = (devices.requests ?? []).findIndex(({ exactly }) => exactly?.adminAccess === true)
  return at < 0 ? undefined : fieldPath(`spec.devices.requests[${at}].adminAccess`)
}

/** The error if the namespace is not labelled; an undefined `field` means no request for admin access. */
export async function adminNamespaceErrors(
  { metadata: { namespace = '' } }: KubeObject,
  field: FieldPath | undefined,
  { objects }: WriteContext,
): Promise<FieldError[]> {
  if (field === undefined) return []
  const found = await objects.get(Namespaces, '', namespace)
  if (found?.metadata.labels?.[LABEL] === 'true') return []
  const missing = new Error(`could not retrieve namespace to verify admin access: namespaces "${namespace}" not found`)
  const detail = `admin access to devices requires the \`${LABEL}: true\` label on the containing namespace`
  return [found === undefined ? field.internal(missing) : field.forbidden(detail)]
}
