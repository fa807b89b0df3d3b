/** The ResourceClaimTemplate resource: the template of claims that are generated for pods. */
import { type ResourceClaimTemplate, ResourceClaimTemplates } from '#apis/resource/v1.ts'
import {
  type ResourceClaimTemplate as OldTemplate,
  ResourceClaimTemplates as OldTemplates,
} from '#apis/resource/v1beta1.ts'
import { ResourceClaimTemplates as NearTemplates } from '#apis/resource/v1beta2.ts'
import { ageColumn, nameColumn } from '#apiserver/registry/columns.ts'
import { defineResource, type Resource, type RuleContext } from '#apiserver/registry/resource.ts'
import type { KubeObject } from '#meta/object.ts'
import { invalidError } from '#meta/status-errors.ts'
import { type FieldError, fieldPath } from '#meta/validation/field-path.ts'
import { immutable } from '#meta/validation/rules.ts'
import { validateTemplateMetadata } from '#model/template-metadata.ts'

import { adminAccessField, adminNamespaceErrors } from './admin-access.ts'
import { defaultClaimSpec, defaultOldClaimSpec, dropGatedClaimFields, validateClaimSpec } from './claim-spec.ts'

export const resourceClaimTemplate: Resource<ResourceClaimTemplate> = defineResource<ResourceClaimTemplate>({
  kind: ResourceClaimTemplates,
  metadataRules: { update: ['whole', 'change'] },
  otherVersions: [
    { kind: NearTemplates, applyDefaults: applyTemplateDefaults },
    { kind: OldTemplates, applyDefaults: (object) => defaultOldClaimSpec((object as OldTemplate).spec.spec) },
  ],
  applyDefaults: applyTemplateDefaults,
  prepareCreate: ({ spec }, context) => dropGatedClaimFields(spec.spec, undefined, context),
  prepareUpdate: ({ spec }, old, context) => dropGatedClaimFields(spec.spec, old.spec.spec, context),
  validate: validateTemplate,
  validateUpdate: (next, old, context) => [
    ...validateTemplate(next, context),
    ...immutable(fieldPath('spec'), next.spec, old.spec),
  ],
  // Reserves nothing: this hook may read other objects.
  async allocate(next, old, context) {
    const field = old === undefined ? adminAccessField(next.spec.spec) : undefined
    const errors = await adminNamespaceErrors(next, field, context)
    if (errors.length === 0) return async () => undefined
    // Other errors are in the same answer.
    throw invalidError(ResourceClaimTemplates, next.metadata.name ?? '', [
      ...errors,
      ...validateTemplate(next, context),
    ])
  },
  columns: [nameColumn, ageColumn],
  deleteAnswersObject: true,
})

function applyTemplateDefaults(object: KubeObject): void {
  defaultClaimSpec((object as ResourceClaimTemplate).spec.spec)
}

function validateTemplate({ spec }: ResourceClaimTemplate, context: RuleContext): FieldError[] {
  return [
    ...validateTemplateMetadata(fieldPath('spec.metadata'), spec.metadata ?? {}),
    ...validateClaimSpec(fieldPath('spec.spec'), spec.spec, context),
  ]
}
