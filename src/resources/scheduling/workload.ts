/** Workload: the sorts of pod groups that something consists of, as templates to make the groups from. */
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
import { child, type FieldError, index, required } from '#meta/validation/field-error.ts'
import { pathSegmentName } from '#meta/validation/names.ts'
import { complaining } from '#meta/validation/rules.ts'

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

/** Templates are compared by their place, not by their name. */
function dropFields(next: WorkloadSpec, old: WorkloadSpec | undefined, context: RuleContext): void {
  for (const [at, template] of (next.podGroupTemplates ?? []).entries()) {
    dropGatedFields(template, old?.podGroupTemplates?.[at], context)
  }
}

function validateSpec({ controllerRef, podGroupTemplates }: WorkloadSpec, context: RuleContext): FieldError[] {
  const field = 'spec.podGroupTemplates'
  const templates = podGroupTemplates ?? []
  const count = validateCount(field, templates)
  return [
    ...(controllerRef === undefined ? [] : validateReference('spec.controllerRef', controllerRef)),
    ...count,
    ...(count.length > 0
      ? []
      : [
          ...uniqueItems(field, templates, ({ name }) => name),
          ...templates.flatMap((template, at) => validateTemplate(index(field, at), template, context)),
        ]),
  ]
}

function validateCount(field: string, templates: readonly PodGroupTemplate[]): FieldError[] {
  return [...itemLimit(field, templates, MAX_TEMPLATES), ...(templates.length === 0 ? [required(field)] : [])]
}

function validateSpecUpdate(next: WorkloadSpec, old: WorkloadSpec): FieldError[] {
  const field = 'spec.podGroupTemplates'
  return [
    ...(semanticEqual(next.controllerRef, old.controllerRef) ? [] : fixedField('spec.controllerRef')),
    ...(semanticEqual(next.podGroupTemplates, old.podGroupTemplates)
      ? []
      : [...fixedField(field), ...validateCount(field, next.podGroupTemplates ?? [])]),
  ]
}

function validateTemplate(path: string, template: PodGroupTemplate, { isEnabled }: RuleContext): FieldError[] {
  return [
    ...requiredName(child(path, 'name'), template.name, shortName),
    ...validateGroup(path, template, undefined, { isEnabled, isFixed: false, needsDisruptionMode: false }),
  ]
}

function validateReference(path: string, { apiGroup = '', kind, name }: TypedLocalObjectReference): FieldError[] {
  const segment = (field: string, value: string): FieldError[] =>
    complaining(field, value, pathSegmentName(value), 'format=k8s-path-segment-name')
  return [
    ...(apiGroup === '' ? [] : longName(child(path, 'apiGroup'), apiGroup)),
    ...requiredName(child(path, 'kind'), kind, segment),
    ...requiredName(child(path, 'name'), name, segment),
  ]
}
