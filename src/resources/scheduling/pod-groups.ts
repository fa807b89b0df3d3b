/**
 * What pod groups and the templates they are made from have in common: the policy by which the group is scheduled, where
 * its pods may go together, the devices they share, and how the group is pushed out. The rules are those that upstream
 * declares in scheduling/v1alpha2.
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
import { asJson, child, type FieldError, forbidden, index, notInSet, required } from '#meta/validation/field-error.ts'
import { validateLabelName } from '#meta/validation/rules.ts'

const MAX_CLAIMS = 4
const MAX_TOPOLOGIES = 1
const HIGHEST_USER_PRIORITY = 1_000_000_000
const LOWEST_PRIORITY = -(2 ** 31)
const DISRUPTION_MODES = ['Pod', 'PodGroup']

/** The fields that both have, as they are in either: what is absent in one is null in the other. */
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

/** Takes out the fields of gates that are off, unless they were in use before. */
export function dropGatedFields(next: GroupFields, old: GroupFields | undefined, { isEnabled }: RuleContext): void {
  for (const [name, gate] of gates) {
    if (!isEnabled(gate) && isUnset(old?.[name])) delete next[name]
  }
}

function isUnset(value: unknown): boolean {
  return value === undefined || value === null || value === '' || (Array.isArray(value) && value.length === 0)
}

/** How the fields are judged in an update. `isFixed`: none of them may change (a group; templates are fixed as a whole). */
export interface GroupRules extends Pick<RuleContext, 'isEnabled'> {
  readonly isFixed: boolean
  readonly needsDisruptionMode: boolean
}

/** Looks only at fields that have changed; `old` is absent for what is new. */
export function validateGroup(
  path: string,
  next: GroupFields,
  old: GroupFields | undefined,
  rules: GroupRules,
): FieldError[] {
  const { isEnabled, isFixed } = rules
  const at = (name: string): string => child(path, name)
  const isChanged = (name: keyof GroupFields): boolean =>
    old === undefined || isUnset(next[name]) !== isUnset(old[name]) || !semanticEqual(next[name], old[name])
  const judge = (name: keyof GroupFields, check: (field: string) => FieldError[], gate?: string): FieldError[] => {
    if (!isChanged(name)) return []
    const isOn = gate === undefined || isEnabled(gate)
    if (!isOn) return isUnset(next[name]) ? [] : [forbidden(at(name), '')]
    if (isFixed && old !== undefined) return [...fixedField(at(name)), ...validateClaimCount(at(name), next[name])]
    return check(at(name))
  }
  return [
    ...judge('schedulingPolicy', (field) => validatePolicy(field, next.schedulingPolicy)),
    ...judge(
      'schedulingConstraints',
      (field) => validateConstraints(field, next.schedulingConstraints ?? {}),
      'TopologyAwareWorkloadScheduling',
    ),
    ...judge('resourceClaims', (field) => validateClaims(field, next.resourceClaims ?? [])),
    ...judge('disruptionMode', (field) => validateMode(field, next.disruptionMode, rules), 'WorkloadAwarePreemption'),
    ...judge(
      'priorityClassName',
      (field) => ((next.priorityClassName ?? '') === '' ? [] : longName(field, next.priorityClassName ?? '')),
      'WorkloadAwarePreemption',
    ),
    ...judge(
      'priority',
      (field) => [
        ...atMost(field, next.priority, HIGHEST_USER_PRIORITY),
        ...atLeast(field, next.priority, LOWEST_PRIORITY),
      ],
      'WorkloadAwarePreemption',
    ),
  ]
}

function validateMode(field: string, mode: string | undefined, { needsDisruptionMode }: GroupRules): FieldError[] {
  if (mode === undefined) return needsDisruptionMode ? [required(field)] : []
  return DISRUPTION_MODES.includes(mode) ? [] : [notInSet(field, asJson(mode), DISRUPTION_MODES)]
}

function validatePolicy(path: string, policy: PodGroupSchedulingPolicy): FieldError[] {
  const field = child(path, 'gang', 'minCount')
  const minCount = policy.gang?.minCount
  return [
    ...oneMember(path, ['basic', 'gang'], policy),
    ...(minCount === 0 ? [required(field)] : atLeast(field, minCount, 1)),
  ]
}

function validateConstraints(path: string, { topology = [] }: PodGroupSchedulingConstraints): FieldError[] {
  const field = child(path, 'topology')
  const tooMany = itemLimit(field, topology, MAX_TOPOLOGIES)
  if (tooMany.length > 0) return tooMany
  return topology.flatMap(({ key }, at) => requiredName(child(index(field, at), 'key'), key, validateLabelName))
}

/** Of a list that may not change its length is told all the same. */
function validateClaimCount(field: string, value: unknown): FieldError[] {
  return Array.isArray(value) ? itemLimit(field, value, MAX_CLAIMS) : []
}

function validateClaims(field: string, claims: readonly PodGroupResourceClaim[]): FieldError[] {
  const tooMany = itemLimit(field, claims, MAX_CLAIMS)
  if (tooMany.length > 0) return tooMany
  return [
    ...uniqueItems(field, claims, ({ name }) => name),
    ...claims.flatMap((claim, at) => validateClaim(index(field, at), claim)),
  ]
}

const claimNames = ['resourceClaimName', 'resourceClaimTemplateName'] as const

function validateClaim(path: string, claim: PodGroupResourceClaim): FieldError[] {
  return [
    ...oneMember(path, claimNames, claim),
    ...requiredName(child(path, 'name'), claim.name, shortName),
    ...claimNames.flatMap((name) => {
      const value = claim[name]
      return value === undefined ? [] : longName(child(path, name), value)
    }),
  ]
}
