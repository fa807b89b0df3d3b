/** Admin access to devices that others use is for namespaces that are marked for it. */
import { Namespaces } from '#apis/core/v1.ts'
import type { ResourceClaimSpec } from '#apis/resource/v1.ts'
import type { WriteContext } from '#apiserver/registry/resource.ts'
import type { KubeObject } from '#meta/object.ts'
import { type FieldError, forbidden, internal } from '#meta/validation/field-error.ts'

const LABEL = 'resource.kubernetes.io/admin-access'

/** Where a claim asks for it first, or undefined. */
export function adminAccessField({ devices }: ResourceClaimSpec): string | undefined {
  const at = (devices.requests ?? []).findIndex(({ exactly }) => exactly?.adminAccess === true)
  return at < 0 ? undefined : `spec.devices.requests[${at}].adminAccess`
}

/** What is wrong when the namespace of the object is not marked; `field` undefined: nobody asks for admin access. */
export async function adminNamespaceErrors(
  { metadata: { namespace = '' } }: KubeObject,
  field: string | undefined,
  { objects }: WriteContext,
): Promise<FieldError[]> {
  if (field === undefined) return []
  const found = await objects.get(Namespaces, '', namespace)
  if (found?.metadata.labels?.[LABEL] === 'true') return []
  const missing = new Error(`could not retrieve namespace to verify admin access: namespaces "${namespace}" not found`)
  const detail = `admin access to devices requires the \`${LABEL}: true\` label on the containing namespace`
  return [found === undefined ? internal(field, missing) : forbidden(field, detail)]
}
