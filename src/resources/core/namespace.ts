/**
 * The Namespace resource: a scope for names. It also has finalizers in `spec`. A deleted namespace is terminating until
 * the namespace controller has deleted its objects and removed its finalizer through `finalize`.
 */
import { type Namespace, Namespaces } from '#apis/core/v1.ts'
import { ageColumn, nameColumn } from '#apiserver/registry/columns.ts'
import { defineResource, type Resource } from '#apiserver/registry/resource.ts'
import { asJson, type FieldError, fieldPath, type FieldPath } from '#meta/validation/field-path.ts'
import { nameIsLabel, qualifiedName } from '#meta/validation/names.ts'
import { validateFinalizerName } from '#meta/validation/object-meta.ts'

const NAME_LABEL = 'kubernetes.io/metadata.name'
const KUBERNETES = 'kubernetes'

export const namespace: Resource<Namespace> = defineResource<Namespace>({
  kind: Namespaces,
  metadataRules: { update: ['whole', 'change'] },
  nameRule: nameIsLabel,
  applyDefaults(object) {
    labelWithName(object)
    if (object.status !== undefined) object.status.phase ||= 'Active'
  },
  prepareCreate(object) {
    labelWithName(object)
    object.status = { phase: 'Active' }
    object.spec ??= {}
    const { finalizers = [] } = object.spec
    if (!finalizers.includes(KUBERNETES)) object.spec.finalizers = [...finalizers, KUBERNETES]
  },
  prepareUpdate(next, old) {
    labelWithName(next)
    next.spec = old.spec
  },
  validate: ({ spec }) =>
    (spec?.finalizers ?? []).flatMap((one) => validateFinalizer(fieldPath('spec.finalizers'), one)),
  deletion(object) {
    object.status = { ...object.status, phase: 'Terminating' }
  },
  isDeletionBlocked: hasSpecFinalizers,
  marksFirst: 'with-policy',
  status: {
    keeps: ['spec'],
    validateUpdate: validatePhase,
  },
  parts: {
    finalize: {
      keeps: ['status'],
      validateUpdate: ({ spec }) => fieldPath('spec.finalizers').each(spec?.finalizers, validateFinalizer),
    },
  },
  fieldSelectors: { 'status.phase': ({ status }) => status.phase ?? '' },
  unknownField: (label) => `field label not supported: ${label}`,
  columns: [nameColumn, { name: 'Status', value: ({ status }) => status.phase ?? '' }, ageColumn],
  deleteAnswersObject: true,
})

/** True if it has spec finalizers, deleted or not; `finalize` removes the last one. */
export function hasSpecFinalizers({ spec }: Namespace): boolean {
  return (spec?.finalizers?.length ?? 0) > 0
}

/** The label that selectors of namespaces use. Generated names are set before creation. */
function labelWithName({ metadata }: Namespace): void {
  const { name = '' } = metadata
  if (name !== '') metadata.labels = { ...metadata.labels, [NAME_LABEL]: name }
}

function validateFinalizer(path: FieldPath, finalizer: string): FieldError[] {
  return [...path.check(finalizer, qualifiedName), ...validateFinalizerName(path, finalizer)]
}

function validatePhase({ metadata, status }: Namespace): FieldError[] {
  const deleted = metadata.deletionTimestamp !== undefined
  const phase = deleted ? 'Terminating' : 'Active'
  if (status?.phase === phase) return []
  const rule = `may only be '${phase}' if \`deletionTimestamp\` is ${deleted ? 'not ' : ''}empty`
  return [fieldPath('status.Phase').invalid(asJson(status?.phase ?? ''), rule)]
}
