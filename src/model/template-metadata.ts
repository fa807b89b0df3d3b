/** Copies metadata from claim and pod templates: only labels and annotations. */
import type { ObjectMeta } from '#meta/object.ts'
import type { FieldError, FieldPath } from '#meta/validation/field-path.ts'
import { validateAnnotations, validateLabels } from '#meta/validation/rules.ts'

const allowed: ReadonlySet<string> = new Set(['labels', 'annotations'])

/** Upstream derives the names of fields from Go's. */
const goNames: Readonly<Record<string, string>> = { uid: 'uID' }

export function validateTemplateMetadata(path: FieldPath, metadata: ObjectMeta): FieldError[] {
  const others = Object.entries(metadata).filter(
    ([name, value]) => !allowed.has(name) && value !== undefined && value !== null,
  )
  return [
    ...validateAnnotations(path.child('annotations'), metadata.annotations),
    ...validateLabels(path.child('labels'), metadata.labels),
    ...others.map(([name]) => path.child(goNames[name] ?? name).forbidden('cannot be set')),
  ]
}
