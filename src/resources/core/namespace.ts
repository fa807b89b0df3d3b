/**
 * Namespace: a room for names. Besides the finalizers every object has, it has its own in `spec`: after a delete it
 * stays, terminating, until the namespace controller has emptied it and taken its finalizer off through `finalize`.
 */
import { type Namespace, Namespaces } from '#apis/core/v1.ts'
import { ageColumn, nameColumn } from '#apiserver/registry/columns.ts'
import { defineResource, type Resource } from '#apiserver/registry/resource.ts'
import { asJson, type FieldError, index, invalid } from '#meta/validation/field-error.ts'
import { nameIsLabel, qualifiedName } from '#meta/validation/names.ts'
import { validateFinalizerName } from '#meta/validation/object-meta.ts'
import { complaining } from '#meta/validation/rules.ts'

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
  validate: ({ spec }) => (spec?.finalizers ?? []).flatMap((one) => validateFinalizer('spec.finalizers', one)),
  deletion(object) {
    object.status = { ...object.status, phase: 'Terminating' }
  },
  isHeld: isNamespaceHeld,
  marksFirst: 'with-policy',
  status: {
    keeps: ['spec'],
    validateUpdate: validatePhase,
  },
  parts: {
    finalize: {
      keeps: ['status'],
      validateUpdate: ({ spec }) =>
        (spec?.finalizers ?? []).flatMap((one, at) => validateFinalizer(index('spec.finalizers', at), one)),
    },
  },
  fieldSelectors: { 'status.phase': ({ status }) => status.phase ?? '' },
  unknownField: (label) => `field label not supported: ${label}`,
  columns: [nameColumn, { name: 'Status', value: ({ status }) => status.phase ?? '' }, ageColumn],
  deleteAnswersObject: true,
})

/** Whether its own finalizers keep it, deleted or not; the last one goes through `finalize`. */
export function isNamespaceHeld({ spec }: Namespace): boolean {
  return (spec?.finalizers?.length ?? 0) > 0
}

/** So that selectors of namespaces can name one. A name that is still to be generated comes before creation. */
function labelWithName({ metadata }: Namespace): void {
  const { name = '' } = metadata
  if (name !== '') metadata.labels = { ...metadata.labels, [NAME_LABEL]: name }
}

function validateFinalizer(field: string, finalizer: string): FieldError[] {
  return [...complaining(field, finalizer, qualifiedName(finalizer)), ...validateFinalizerName(field, finalizer)]
}

function validatePhase({ metadata, status }: Namespace): FieldError[] {
  const deleted = metadata.deletionTimestamp !== undefined
  const phase = deleted ? 'Terminating' : 'Active'
  if (status?.phase === phase) return []
  const rule = `may only be '${phase}' if \`deletionTimestamp\` is ${deleted ? 'not ' : ''}empty`
  return [invalid('status.Phase', asJson(status?.phase ?? ''), rule)]
}
