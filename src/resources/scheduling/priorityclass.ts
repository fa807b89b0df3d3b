/** The PriorityClass resource: a named priority of pods, with their preemption policy. */
import { type PriorityClass, PriorityClasses } from '#apis/scheduling/v1.ts'
import { ageColumn, nameColumn } from '#apiserver/registry/columns.ts'
import { defineResource, type Resource } from '#apiserver/registry/resource.ts'
import { asJson, collectErrors, type FieldError, fieldPath } from '#meta/validation/field-path.ts'
import { immutable } from '#meta/validation/rules.ts'

const SYSTEM_PREFIX = 'system-'
/** The highest user priority; higher ones are for critical system pods. */
const HIGHEST_USER_PRIORITY = 1_000_000_000

/** The only classes with the system prefix, and their required values. */
const systemClasses = new Map([
  ['system-node-critical', 2 * HIGHEST_USER_PRIORITY + 1000],
  ['system-cluster-critical', 2 * HIGHEST_USER_PRIORITY],
])

const policies = ['PreemptLowerPriority', 'Never']

export const priorityClass: Resource<PriorityClass> = defineResource<PriorityClass>({
  kind: PriorityClasses,
  // Upstream sets it to 1 and never changes it.
  generation: () => false,
  applyDefaults(object) {
    object.preemptionPolicy ??= 'PreemptLowerPriority'
  },
  validate: validatePriorityClass,
  validateUpdate: (next, old) =>
    collectErrors(
      next.value !== old.value && fieldPath('value').forbidden('may not be changed in an update.'),
      immutable(fieldPath('preemptionPolicy'), next.preemptionPolicy, old.preemptionPolicy),
    ),
  columns: [
    nameColumn,
    { name: 'Value', type: 'integer', value: ({ value }) => value },
    { name: 'Global-Default', type: 'boolean', value: ({ globalDefault = false }) => globalDefault },
    ageColumn,
    { name: 'PreemptionPolicy', value: ({ preemptionPolicy = '' }) => preemptionPolicy },
  ],
})

function validatePriorityClass(object: PriorityClass): FieldError[] {
  const { metadata, value, preemptionPolicy: policy } = object
  const errors: FieldError[] = []
  if (metadata.name?.startsWith(SYSTEM_PREFIX)) {
    const complaint = systemComplaint(object)
    const rule = `priority class names with '${SYSTEM_PREFIX}' prefix are reserved for system use only.`
    if (complaint !== undefined) errors.push(fieldPath('metadata.name').forbidden(`${rule} error: ${complaint}`))
  } else if (value > HIGHEST_USER_PRIORITY) {
    errors.push(
      fieldPath('value').forbidden(`maximum allowed value of a user defined priority is ${HIGHEST_USER_PRIORITY}`),
    )
  }
  if (policy === '') errors.push(fieldPath('preemptionPolicy').required())
  else if (policy !== undefined && !policies.includes(policy)) {
    errors.push(fieldPath('preemptionPolicy').notSupported(asJson(policy), policies))
  }
  return errors
}

function systemComplaint({ metadata: { name = '' }, value, globalDefault }: PriorityClass): string | undefined {
  const fixed = systemClasses.get(name)
  if (fixed === undefined) return `${name} is not a known system priority class`
  if (value !== fixed) return `value of ${name} PriorityClass must be ${fixed}`
  return globalDefault === true ? `globalDefault of ${name} PriorityClass must be false` : undefined
}
