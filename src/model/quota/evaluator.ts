/** Evaluator: computes the quota usage of the objects of one resource. Admission and the quota controller share it. */
import type { ResourceQuota, ScopedResourceSelectorRequirement } from '#apis/core/v1.ts'
import type { GroupResource } from '#meta/kind.ts'
import type { KubeObject } from '#meta/object.ts'
import { quantityOf } from '#meta/quantity.ts'

import type { Amounts } from '../pod-resources.ts'

/** One scope of a quota. */
export type Scope = Readonly<ScopedResourceSelectorRequirement>

/** The relevant parts of a write. */
export interface CountedWrite {
  readonly operation: string
  readonly subresource: string
  readonly object: KubeObject | undefined
  readonly oldObject: KubeObject | undefined
}

export interface Evaluator {
  /** True if such a write can change the usage. */
  handles(write: CountedWrite): boolean
  /** The resources of a quota that these objects use. */
  matching(names: Iterable<string>): string[]
  /** True if the object is within the scope. Absent: within none, so that quotas with scopes do not count it. */
  isWithin?(scope: Scope, object: KubeObject): boolean
  /** The reason why the object cannot be counted against these resources. */
  complaint?(required: ReadonlySet<string>, object: KubeObject): string | undefined
  usage(object: KubeObject): Amounts | Promise<Amounts>
}

export function scopesOf({ spec }: ResourceQuota): Scope[] {
  const named = (spec?.scopes ?? []).map((scopeName) => ({ scopeName, operator: 'Exists' }))
  return [...named, ...(spec?.scopeSelector?.matchExpressions ?? [])]
}

/** True if it is within every scope of the quota. */
export function isWithinScopes(evaluator: Evaluator, quota: ResourceQuota, object: KubeObject): boolean {
  return scopesOf(quota).every((scope) => evaluator.isWithin?.(scope, object) ?? false)
}

/** `value` is the object's value of the scope, if any: its priority class name. */
export function selects({ scopeName, operator, values = [] }: Scope, value: string | undefined): boolean {
  switch (operator) {
    case 'In':
      return value !== undefined && values.includes(value)
    case 'NotIn':
      return value === undefined || !values.includes(value)
    case 'Exists':
      return value !== undefined
    case 'DoesNotExist':
      return value === undefined
    default:
      throw new Error(
        `failed to parse and convert selector: "${operator}" is not a valid scope selector operator of "${scopeName}"`,
      )
  }
}

/** `count/deployments.apps`. */
export function countName({ group, resource }: GroupResource): string {
  return group === '' ? `count/${resource}` : `count/${resource}.${group}`
}

/** Resources that had a quota name before `count/` existed. */
const ALIASED = new Set(['configmaps', 'resourcequotas', 'replicationcontrollers', 'secrets'])

/** Counts objects of any kind. */
export function createCountEvaluator(resource: GroupResource): Evaluator {
  const alias = resource.group === '' && ALIASED.has(resource.resource) ? [resource.resource] : []
  const names = [countName(resource), ...alias]
  const used: Amounts = new Map(names.map((name) => [name, quantityOf(1)]))
  return {
    handles: ({ operation, subresource }) => operation === 'CREATE' && subresource === '',
    matching: (limited) => [...limited].filter((name) => names.includes(name)),
    usage: () => used,
  }
}
