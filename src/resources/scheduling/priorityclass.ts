/** PriorityClass: a name for how important pods are, and whether they may push others out. */
import { type PriorityClass, PriorityClasses } from '#apis/scheduling/v1.ts'
import { ageColumn, nameColumn } from '#apiserver/registry/columns.ts'
import { defineResource, type Resource } from '#apiserver/registry/resource.ts'
import { asJson, type FieldError, forbidden, notSupported, required } from '#meta/validation/field-error.ts'
import { immutable } from '#meta/validation/rules.ts'

const SYSTEM_PREFIX = 'system-'
/** Users' priorities end here; above are those that keep the cluster itself alive. */
const HIGHEST_USER_PRIORITY = 1_000_000_000

/** The only classes that may have a name with the prefix, and the values they must have. */
const systemClasses = new Map([
  ['system-node-critical', 2 * HIGHEST_USER_PRIORITY + 1000],
  ['system-cluster-critical', 2 * HIGHEST_USER_PRIORITY],
])

const policies = ['PreemptLowerPriority', 'Never']

export const priorityClass: Resource<PriorityClass> = defineResource<PriorityClass>({
  kind: PriorityClasses,
  // Upstream sets it to 1 and leaves it there.
  generation: () => false,
  applyDefaults(object) {
    object.preemptionPolicy ??= 'PreemptLowerPriority'
  },
  validate: validatePriorityClass,
  validateUpdate: (next, old) => [
    ...(next.value === old.value ? [] : [forbidden('value', 'may not be changed in an update.')]),
    ...immutable('preemptionPolicy', next.preemptionPolicy, old.preemptionPolicy),
  ],
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
    if (complaint !== undefined) errors.push(forbidden('metadata.name', `${rule} error: ${complaint}`))
  } else if (value > HIGHEST_USER_PRIORITY) {
    errors.push(forbidden('value', `maximum allowed value of a user defined priority is ${HIGHEST_USER_PRIORITY}`))
  }
  if (policy === '') errors.push(required('preemptionPolicy'))
  else if (policy !== undefined && !policies.includes(policy)) {
    errors.push(notSupported('preemptionPolicy', asJson(policy), policies))
  }
  return errors
}

function systemComplaint({ metadata: { name = '' }, value, globalDefault }: PriorityClass): string | undefined {
  const fixed = systemClasses.get(name)
  if (fixed === undefined) return `${name} is not a known system priority class`
  if (value !== fixed) return `value of ${name} PriorityClass must be ${fixed}`
  return globalDefault === true ? `globalDefault of ${name} PriorityClass must be false` : undefined
}
