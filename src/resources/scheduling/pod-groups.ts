/**
 * The parts that PodGroups and their templates share: scheduling policy, topology constraints, shared devices and
 * disruption mode. The rules are those of upstream's scheduling/v1alpha2.
 */
import type {
  PodGroupResourceClaim,
  PodGroupSchedulingConstraints,
  PodGroupSchedulingPolicy,
} from '#apis/scheduling/v1alpha2.ts'
import type { RuleContext } from '#apiserver/registry/resource.ts'
import { semanticEqual } from '#meta/object.ts'
import {
  atLeast,
  atMost,
  fixedField,
  itemLimit,
  longName,
  oneMember,
  requiredName,
  shortName,
  uniqueItems,
} from '#meta/validation/declared.ts'
import type { FieldError, FieldPath } from '#meta/validation/field-path.ts'
import { oneOfSet, validateLabelName } from '#meta/validation/rules.ts'

const MAX_CLAIMS = 4
const MAX_TOPOLOGIES = 1
const HIGHEST_USER_PRIORITY = 1_000_000_000
const LOWEST_PRIORITY = -(2 ** 31)
const DISRUPTION_MODES = ['Pod', 'PodGroup']

/** The common fields of both forms: an absent field in one is null in the other. */
export interface GroupFields {
  schedulingPolicy: PodGroupSchedulingPolicy
  schedulingConstraints?: PodGroupSchedulingConstraints | null
  resourceClaims?: PodGroupResourceClaim[]
  disruptionMode?: string
  priorityClassName?: string
  priority?: number
}

type GatedField = 'schedulingConstraints' | 'resourceClaims' | 'disruptionMode' | 'priorityClassName' | 'priority'

const gates: readonly (readonly [GatedField, gate: string])[] = [
  ['schedulingConstraints', 'TopologyAwareWorkloadScheduling'],
  ['resourceClaims', 'DRAWorkloadResourceClaims'],
  ['disruptionMode', 'WorkloadAwarePreemption'],
  ['priorityClassName', 'WorkloadAwarePreemption'],
  ['priority', 'WorkloadAwarePreemption'],
]

/** Drops fields of disabled gates, unless the old object has them. */
export function dropGatedFields(next: GroupFields, old: GroupFields | undefined, { isEnabled }: RuleContext): void {
  for (const [name, gate] of gates) {
    if (!isEnabled(gate) && isUnset(old?.[name])) delete next[name]
  }
}

function isUnset(value: unknown): boolean {
  return value === undefined || value === null || value === '' || (Array.isArray(value) && value.length === 0)
}

/** The update rules. `isFixed`: no field may change (a group; templates are immutable as a whole). */
export interface GroupRules extends Pick<RuleContext, 'isEnabled'> {
  readonly isFixed: boolean
  readonly needsDisruptionMode: boolean
}

/** Validates only changed fields; `old` is absent for a new object. */
export function validateGroup(
  path: FieldPath,
  next: GroupFields,
  old: GroupFields | undefined,
  rules: GroupRules,
): FieldError[] {
  const { isEnabled, isFixed } = rules
  const at = (name: string): FieldPath => path.child(name)
  const isChanged = (name: keyof GroupFields): boolean =>
    old === undefined || isUnset(next[name]) !== isUnset(old[name]) || !semanticEqual(next[name], old[name])
  const validateField = (
    name: keyof GroupFields,
    check: (path: FieldPath) => FieldError[],
    gate?: string,
  ): FieldError[] => {
    if (!isChanged(name)) return []
    const isOn = gate === undefined || isEnabled(gate)
    if (!isOn) return isUnset(next[name]) ? [] : [at(name).forbidden('')]
    if (isFixed && old !== undefined) return [...fixedField(at(name)), ...validateClaimCount(at(name), next[name])]
    return check(at(name))
  }
  return [
    ...validateField('schedulingPolicy', (field) => validatePolicy(field, next.schedulingPolicy)),
    ...validateField(
      'schedulingConstraints',
      (field) => validateConstraints(field, next.schedulingConstraints ?? {}),
      'TopologyAwareWorkloadScheduling',
    ),
    ...validateField('resourceClaims', (field) => validateClaims(field, next.resourceClaims ?? [])),
    ...validateField(
      'disruptionMode',
      (field) => validateMode(field, next.disruptionMode, rules),
      'WorkloadAwarePreemption',
    ),
    ...validateField(
      'priorityClassName',
      (field) => ((next.priorityClassName ?? '') === '' ? [] : longName(field, next.priorityClassName ?? '')),
      'WorkloadAwarePreemption',
    ),
    ...validateField(
      'priority',
      (field) => [
        ...atMost(field, next.priority, HIGHEST_USER_PRIORITY),
        ...atLeast(field, next.priority, LOWEST_PRIORITY),
      ],
      'WorkloadAwarePreemption',
    ),
  ]
}

function validateMode(path: FieldPath, mode: string | undefined, { needsDisruptionMode }: GroupRules): FieldError[] {
  if (mode === undefined) return needsDisruptionMode ? [path.required()] : []
  return oneOfSet(path, mode, DISRUPTION_MODES)
}

function validatePolicy(path: FieldPath, policy: PodGroupSchedulingPolicy): FieldError[] {
  const field = path.child('gang.minCount')
  const minCount = policy.gang?.minCount
  return [
    ...oneMember(path, ['basic', 'gang'], policy),
    ...(minCount === 0 ? [field.required()] : atLeast(field, minCount, 1)),
  ]
}

function validateConstraints(path: FieldPath, { topology = [] }: PodGroupSchedulingConstraints): FieldError[] {
  const field = path.child('topology')
  const tooMany = itemLimit(field, topology, MAX_TOPOLOGIES)
  if (tooMany.length > 0) return tooMany
  return field.each(topology, (path, { key }) => requiredName(path.child('key'), key, validateLabelName))
}

/** A changed length of an immutable list is reported as well. */
function validateClaimCount(path: FieldPath, value: unknown): FieldError[] {
  return Array.isArray(value) ? itemLimit(path, value, MAX_CLAIMS) : []
}

function validateClaims(path: FieldPath, claims: readonly PodGroupResourceClaim[]): FieldError[] {
  const tooMany = itemLimit(path, claims, MAX_CLAIMS)
  if (tooMany.length > 0) return tooMany
  return [...uniqueItems(path, claims, ({ name }) => name), ...path.each(claims, validateClaim)]
}

const claimNames = ['resourceClaimName', 'resourceClaimTemplateName'] as const

function validateClaim(path: FieldPath, claim: PodGroupResourceClaim): FieldError[] {
  return [
    ...oneMember(path, claimNames, claim),
    ...requiredName(path.child('name'), claim.name, shortName),
    ...claimNames.flatMap((name) => {
      const value = claim[name]
      return value === undefined ? [] : longName(path.child(name), value)
    }),
  ]
}
