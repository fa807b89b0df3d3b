/** Names kept for what the server reads from files at its start. */
import type { RuleContext } from '#apiserver/registry/resource.ts'
import type { KubeObject } from '#meta/object.ts'
import { type FieldError, invalid } from '#meta/validation/field-error.ts'

const SUFFIX = '.static.k8s.io'
const RULE = `names ending with "${SUFFIX}" are reserved for static manifest-based configurations and cannot be managed via the API`

export function validateStaticName({ metadata: { name = '' } }: KubeObject, { isEnabled }: RuleContext): FieldError[] {
  if (!name.endsWith(SUFFIX) || !isEnabled('ManifestBasedAdmissionControlConfig')) return []
  return [invalid('metadata.name', name, RULE)]
}

/** Where the feature is on, a new object of such a name has been refused by now. */
export function staticNameWarnings({ metadata: { name = '' } }: KubeObject): string[] {
  return name.endsWith(SUFFIX) ? [`metadata.name: ${RULE}`] : []
}
