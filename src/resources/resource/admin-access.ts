/** Admin access to devices that others use is for namespaces that are marked for it. */
import { Namespaces } from '#apis/core/v1.ts'
import type { Kind } from '#apis/kinds.ts'
import type { ResourceClaimSpec } from '#apis/resource/v1.ts'
import type { WriteContext } from '#apiserver/registry/resource.ts'
import type { KubeObject } from '#meta/object.ts'
import { invalidError } from '#meta/status-errors.ts'
import { type FieldError, forbidden, internal } from '#meta/validation/field-error.ts'

const LABEL = 'resource.kubernetes.io/admin-access'

/** Where a claim asks for it first, or undefined. */
export function adminAccessField({ devices }: ResourceClaimSpec): string | undefined {
  const at = (devices.requests ?? []).findIndex(({ exactly }) => exactly?.adminAccess === true)
  return at < 0 ? undefined : `spec.devices.requests[${at}].adminAccess`
}

interface Asking {
  readonly kind: Kind
  readonly object: KubeObject
  /** Where admin access is asked for; undefined: nobody asks. */
  readonly field: string | undefined
  /** What else is wrong with the object, to be said in the same answer. */
  readonly faults: () => readonly FieldError[]
}

/** Throws when the namespace of the object is not marked. */
export async function requireAdminNamespace(
  { kind, object, field, faults }: Asking,
  { objects }: WriteContext,
): Promise<void> {
  if (field === undefined) return
  const { namespace = '', name = '' } = object.metadata
  const found = await objects.get(Namespaces, '', namespace)
  if (found?.metadata.labels?.[LABEL] === 'true') return
  const missing = new Error(`could not retrieve namespace to verify admin access: namespaces "${namespace}" not found`)
  const detail = `admin access to devices requires the \`${LABEL}: true\` label on the containing namespace`
  const error: FieldError = found === undefined ? internal(field, missing) : forbidden(field, detail)
  throw invalidError(kind, name, [error, ...faults()])
}
