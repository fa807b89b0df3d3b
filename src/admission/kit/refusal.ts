/** The errors with which admission plugins refuse a request: 403 with the name of the object. */
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

/** The number of characters that `generateName` adds. */
const SUFFIX_LENGTH = 5

/**
 * For mutating plugins. Upstream generates names after they have run, so users know these errors with the prefix: `pods
 * "web-5d59d67564-" is forbidden`. A client that sends both name and prefix sees the prefix.
 */
export function refuseEarly(attributes: Attributes, why: string): StatusError {
  const prefix = attributes.object?.metadata.generateName ?? ''
  return refuse(hasDrawnName(attributes) ? { ...attributes, name: prefix } : attributes, why)
}

/** The name as upstream's mutating plugins see it: empty if the server generates it. */
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

/** Joins errors as Go's aggregate errors do: a single one unchanged, several in brackets, duplicates once. */
export function aggregate(complaints: readonly string[]): string {
  const texts = [...new Set(complaints)]
  return texts.length > 1 ? `[${texts.join(', ')}]` : (texts[0] ?? '')
}
