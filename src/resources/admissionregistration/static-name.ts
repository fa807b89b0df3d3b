/** Refuses names that are reserved for objects from files, which the server reads at its start. */
import type { RuleContext } from '#apiserver/registry/resource.ts'
import type { KubeObject } from '#meta/object.ts'
import { type FieldError, fieldPath } from '#meta/validation/field-path.ts'

const SUFFIX = '.static.k8s.io'
const RULE = `names ending with "${SUFFIX}" are reserved for static manifest-based configurations and cannot be managed via the API`

export function validateStaticName({ metadata: { name = '' } }: KubeObject, { isEnabled }: RuleContext): FieldError[] {
  if (!name.endsWith(SUFFIX) || !isEnabled('ManifestBasedAdmissionControlConfig')) return []
  return [fieldPath('metadata.name').invalid(name, RULE)]
}

/** With the feature enabled, creation under such a name was already rejected. */
export function staticNameWarnings({ metadata: { name = '' } }: KubeObject): string[] {
  return name.endsWith(SUFFIX) ? [`metadata.name: ${RULE}`] : []
}
