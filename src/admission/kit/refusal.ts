/** How plugins say no: 403, naming the object that was to be written. */
import type { Attributes } from '#apiserver/registry/admission.ts'
import { forbiddenError } from '#meta/status-errors.ts'
import type { StatusError } from '#meta/status.ts'

/** For validating plugins, which know the final name. */
export function refuse({ kind, name, object }: Attributes, why: string): StatusError {
  return forbiddenError(
    { group: kind.group, resource: kind.plural },
    name || object?.metadata.name || object?.metadata.generateName || 'Unknown',
    why,
  )
}

/** Characters that are added to `generateName`. */
const SUFFIX_LENGTH = 5

/**
 * For mutating plugins. Upstream draws names after they have run, so users know these refusals by the prefix:
 * `pods "web-5d59d67564-" is forbidden`. Somebody who sends such a name together with its prefix reads the prefix.
 */
export function refuseEarly(attributes: Attributes, why: string): StatusError {
  const prefix = attributes.object?.metadata.generateName ?? ''
  return refuse(hasDrawnName(attributes) ? { ...attributes, name: prefix } : attributes, why)
}

/** The name in the object as upstream's mutating plugins find it: empty when the server draws it from `generateName`. */
export function sentName(attributes: Attributes): string {
  return hasDrawnName(attributes) ? '' : (attributes.object?.metadata.name ?? '')
}

function hasDrawnName({ name, operation, object, subresource }: Attributes): boolean {
  const prefix = object?.metadata.generateName ?? ''
  return (
    operation === 'CREATE' &&
    subresource === '' &&
    prefix !== '' &&
    name.startsWith(prefix) &&
    name.length === prefix.length + SUFFIX_LENGTH
  )
}

/** Several complaints as Go's aggregated errors print them: one as it is, more in brackets, repeated ones once. */
export function aggregate(complaints: readonly string[]): string {
  const texts = [...new Set(complaints)]
  return texts.length > 1 ? `[${texts.join(', ')}]` : (texts[0] ?? '')
}
