/** The RuntimeClass resource: the handler of the container runtime, its overhead and its scheduling rules. */
import type { Toleration } from '#apis/core/v1.ts'
import { type RuntimeClass, RuntimeClasses } from '#apis/node/v1.ts'
import { ageColumn, nameColumn } from '#apiserver/registry/columns.ts'
import { defineResource, type Resource, type RuleContext } from '#apiserver/registry/resource.ts'
import { createRepetition } from '#lib/repetition.ts'
import { type FieldError, fieldPath, type FieldPath } from '#meta/validation/field-path.ts'
import { immutable, validateDnsLabel, validateLabels } from '#meta/validation/rules.ts'
import { validateTolerations } from '#model/nodes/taints.ts'
import { validateOverhead } from '#model/pod-spec/containers/resources.ts'
import { roundAmounts } from '#model/pod-spec/defaults.ts'
import { podTemplateOptions } from '#model/pod-spec/options.ts'
import { oldNodeLabelText } from '#model/pod-spec/warnings/warnings.ts'

export const runtimeClass: Resource<RuntimeClass> = defineResource<RuntimeClass>({
  kind: RuntimeClasses,
  metadataRules: { update: ['change', 'whole'], plainFinalizers: true },
  applyDefaults: ({ overhead }) => roundAmounts(overhead?.podFixed),
  validate: validateRuntimeClass,
  validateUpdate: (next, old, context) => [
    ...validateRuntimeClass(next, context),
    ...immutable(fieldPath('handler'), next.handler, old.handler),
  ],
  warnings: ({ scheduling }) =>
    Object.keys(scheduling?.nodeSelector ?? {}).flatMap((label) => {
      const complaint = oldNodeLabelText(label)
      return complaint === undefined ? [] : [`scheduling.nodeSelector: ${complaint}`]
    }),
  columns: [nameColumn, { name: 'Handler', value: ({ handler }) => handler }, ageColumn],
  putCreates: true,
  putNeedsVersion: true,
})

function validateRuntimeClass({ handler, overhead, scheduling }: RuntimeClass, context: RuleContext): FieldError[] {
  return [
    ...(handler === '' ? [fieldPath('handler').required()] : validateDnsLabel(fieldPath('handler'), handler)),
    ...validateOverhead(fieldPath('overhead'), overhead?.podFixed, podTemplateOptions(context)),
    ...validateLabels(fieldPath('scheduling.nodeSelector'), scheduling?.nodeSelector),
    ...validateTolerations(fieldPath('scheduling.tolerations'), scheduling?.tolerations),
    ...validateDistinct(fieldPath('scheduling.tolerations'), scheduling?.tolerations),
  ]
}

/** Tolerations are merged into pods by all fields except their duration. */
function validateDistinct(path: FieldPath, tolerations: readonly Toleration[] = []): FieldError[] {
  const isRepeated = createRepetition()
  return path.each(tolerations, (path, toleration) => {
    const { key = '', operator = '', value = '', effect = '' } = toleration
    const identity = JSON.stringify([key, operator, value, effect])
    const errors = isRepeated(identity) ? [path.duplicate(toleration)] : []
    return errors
  })
}
