/** The Workload resource: the templates of pod groups that an application consists of. */
import {
  type PodGroupTemplate,
  type TypedLocalObjectReference,
  type Workload,
  Workloads,
  type WorkloadSpec,
} from '#apis/scheduling/v1alpha2.ts'
import { ageColumn, nameColumn } from '#apiserver/registry/columns.ts'
import { defineResource, type Resource, type RuleContext } from '#apiserver/registry/resource.ts'
import { semanticEqual } from '#meta/object.ts'
import { fixedField, itemLimit, longName, requiredName, shortName, uniqueItems } from '#meta/validation/declared.ts'
import { collectErrors, type FieldError, fieldPath, type FieldPath } from '#meta/validation/field-path.ts'
import { pathSegmentName } from '#meta/validation/names.ts'

import { dropGatedFields, validateGroup } from './pod-groups.ts'

const MAX_TEMPLATES = 8

export const workload: Resource<Workload> = defineResource<Workload>({
  kind: Workloads,
  prepareCreate: ({ spec }, context) => dropFields(spec, undefined, context),
  prepareUpdate: ({ spec }, old, context) => dropFields(spec, old.spec, context),
  validate: ({ spec }, context) => validateSpec(spec, context),
  validateUpdate: (next, old) => validateSpecUpdate(next.spec, old.spec),
  columns: [nameColumn, ageColumn],
})

/** Templates are compared by index, not by name. */
function dropFields(next: WorkloadSpec, old: WorkloadSpec | undefined, context: RuleContext): void {
  for (const [at, template] of (next.podGroupTemplates ?? []).entries()) {
    dropGatedFields(template, old?.podGroupTemplates?.[at], context)
  }
}

function validateSpec({ controllerRef, podGroupTemplates }: WorkloadSpec, context: RuleContext): FieldError[] {
  const field = fieldPath('spec.podGroupTemplates')
  const templates = podGroupTemplates ?? []
  const count = validateCount(field, templates)
  return collectErrors(
    controllerRef !== undefined && validateReference(fieldPath('spec.controllerRef'), controllerRef),
    count,
    count.length === 0 && [
      ...uniqueItems(field, templates, ({ name }) => name),
      ...field.each(templates, (path, template) => validateTemplate(path, template, context)),
    ],
  )
}

function validateCount(path: FieldPath, templates: readonly PodGroupTemplate[]): FieldError[] {
  return collectErrors(itemLimit(path, templates, MAX_TEMPLATES), templates.length === 0 && path.required())
}

function validateSpecUpdate(next: WorkloadSpec, old: WorkloadSpec): FieldError[] {
  const field = fieldPath('spec.podGroupTemplates')
  return collectErrors(
    !semanticEqual(next.controllerRef, old.controllerRef) && fixedField(fieldPath('spec.controllerRef')),
    !semanticEqual(next.podGroupTemplates, old.podGroupTemplates) && [
      ...fixedField(field),
      ...validateCount(field, next.podGroupTemplates ?? []),
    ],
  )
}

function validateTemplate(path: FieldPath, template: PodGroupTemplate, { isEnabled }: RuleContext): FieldError[] {
  return [
    ...requiredName(path.child('name'), template.name, shortName),
    ...validateGroup(path, template, undefined, { isEnabled, isFixed: false, needsDisruptionMode: false }),
  ]
}

function validateReference(path: FieldPath, { apiGroup = '', kind, name }: TypedLocalObjectReference): FieldError[] {
  const segment = (path: FieldPath, value: string): FieldError[] =>
    path.check(value, pathSegmentName, 'format=k8s-path-segment-name')
  return collectErrors(
    apiGroup !== '' && longName(path.child('apiGroup'), apiGroup),
    requiredName(path.child('kind'), kind, segment),
    requiredName(path.child('name'), name, segment),
  )
}
