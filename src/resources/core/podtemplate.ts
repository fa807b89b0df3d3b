/** The PodTemplate resource: a stored pod template. */
import { type PodTemplate, PodTemplates } from '#apis/core/v1.ts'
import { nameColumn } from '#apiserver/registry/columns.ts'
import { defineResource, type Resource } from '#apiserver/registry/resource.ts'
import { labelsText } from '#meta/labels.ts'
import { fieldPath } from '#meta/validation/field-path.ts'
import { defaultPodTemplate } from '#model/pod-spec/defaults.ts'
import { dropDisabledTemplateFields } from '#model/pod-spec/gated-fields.ts'
import { podTemplateOptions } from '#model/pod-spec/options.ts'
import { validatePodTemplate } from '#model/pod-spec/pod-template.ts'
import { podWarnings } from '#model/pod-spec/warnings/warnings.ts'

export const podTemplate: Resource<PodTemplate> = defineResource<PodTemplate>({
  kind: PodTemplates,
  generation: 'spec',
  applyDefaults: ({ template }) => defaultPodTemplate(template),
  prepareCreate: ({ template }, context) => dropDisabledTemplateFields(template, undefined, context),
  prepareUpdate: ({ template }, old, context) => dropDisabledTemplateFields(template, old.template, context),
  validate: ({ template }, context) =>
    validatePodTemplate(template, fieldPath('template'), podTemplateOptions(context)),
  validateUpdate: ({ template }, old, context) =>
    validatePodTemplate(template, fieldPath('template'), podTemplateOptions(context, old.template)),
  warnings: (next, old) =>
    old === undefined || next.metadata.generation !== old.metadata.generation
      ? podWarnings(fieldPath('template'), next.template)
      : [],
  columns: [
    nameColumn,
    { name: 'Containers', value: ({ template }) => (template.spec.containers ?? []).map(({ name }) => name).join(',') },
    {
      name: 'Images',
      value: ({ template }) => (template.spec.containers ?? []).map(({ image = '' }) => image).join(','),
    },
    { name: 'Pod Labels', value: ({ template }) => labelsText(template.metadata.labels) },
  ],
  deleteAnswersObject: true,
})
