/** Metadata of objects that are made for somebody: only labels and annotations go over to them. */
import type { ObjectMeta } from '#meta/object.ts'
import { child, type FieldError, forbidden } from '#meta/validation/field-error.ts'
import { validateAnnotations, validateLabels } from '#meta/validation/rules.ts'

const allowed: ReadonlySet<string> = new Set(['labels', 'annotations'])

/** Upstream makes the names of fields out of Go's. */
const goNames: Readonly<Record<string, string>> = { uid: 'uID' }

export function validateTemplateMetadata(path: string, metadata: ObjectMeta): FieldError[] {
  const others = Object.entries(metadata).filter(
    ([name, value]) => !allowed.has(name) && value !== undefined && value !== null,
  )
  return [
    ...validateAnnotations(child(path, 'annotations'), metadata.annotations),
    ...validateLabels(child(path, 'labels'), metadata.labels),
    ...others.map(([name]) => forbidden(child(path, goNames[name] ?? name), 'cannot be set')),
  ]
}
