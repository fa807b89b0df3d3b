/** RuntimeClass: which handler of the container runtime runs a pod, what that costs, and where it can run. */
import type { Toleration } from '#apis/core/v1.ts'
import { type RuntimeClass, RuntimeClasses } from '#apis/node/v1.ts'
import { ageColumn, nameColumn } from '#apiserver/registry/columns.ts'
import { defineResource, type Resource, type RuleContext } from '#apiserver/registry/resource.ts'
import { duplicate, type FieldError, index, required } from '#meta/validation/field-error.ts'
import { immutable, validateLabels } from '#meta/validation/rules.ts'
import { validateDnsLabel } from '#model/pod-spec/checks.ts'
import { roundAmounts } from '#model/pod-spec/defaults.ts'
import { podTemplateOptions } from '#model/pod-spec/options.ts'
import { validateOverhead } from '#model/pod-spec/resources.ts'
import { oldNodeLabelText } from '#model/pod-spec/warnings.ts'
import { validateTolerations } from '#model/taints.ts'

export const runtimeClass: Resource<RuntimeClass> = defineResource<RuntimeClass>({
  kind: RuntimeClasses,
  metadataRules: { update: ['change', 'whole'], plainFinalizers: true },
  applyDefaults: ({ overhead }) => roundAmounts(overhead?.podFixed),
  validate: validateRuntimeClass,
  validateUpdate: (next, old, context) => [
    ...validateRuntimeClass(next, context),
    ...immutable('handler', next.handler, old.handler),
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
    ...(handler === '' ? [required('handler')] : validateDnsLabel('handler', handler)),
    ...validateOverhead('overhead', overhead?.podFixed, podTemplateOptions(context)),
    ...validateLabels('scheduling.nodeSelector', scheduling?.nodeSelector),
    ...validateTolerations('scheduling.tolerations', scheduling?.tolerations),
    ...validateDistinct('scheduling.tolerations', scheduling?.tolerations),
  ]
}

/** They are merged into pods by all but how long they last. */
function validateDistinct(field: string, tolerations: readonly Toleration[] = []): FieldError[] {
  const seen = new Set<string>()
  return tolerations.flatMap((toleration, at) => {
    const { key = '', operator = '', value = '', effect = '' } = toleration
    const identity = JSON.stringify([key, operator, value, effect])
    const errors = seen.has(identity) ? [duplicate(index(field, at), toleration)] : []
    seen.add(identity)
    return errors
  })
}
