/**
 * Evaluator: what the objects of one resource count against quotas. Pure but for what `usage` has to look up, and
 * without the request, so that the controller that recounts a namespace can use the same ones.
 */
import type { ResourceQuota, ScopedResourceSelectorRequirement } from '#apis/core/v1.ts'
import type { GroupResource } from '#meta/kind.ts'
import type { KubeObject } from '#meta/object.ts'
import { quantityOf } from '#meta/quantity.ts'

import type { Amounts } from '../pod-resources.ts'

/** One scope of a quota. */
export type Scope = Readonly<ScopedResourceSelectorRequirement>

/** A write, as far as counting goes. */
export interface CountedWrite {
  readonly operation: string
  readonly subresource: string
  readonly object: KubeObject | undefined
  readonly oldObject: KubeObject | undefined
}

export interface Evaluator {
  /** Whether such a write can change what is used. */
  handles(write: CountedWrite): boolean
  /** Of the resources that a quota limits, those that these objects use. */
  matching(names: Iterable<string>): string[]
  /** Whether the object is within the scope. Absent: within none, so that quotas with scopes do not count it. */
  isWithin?(scope: Scope, object: KubeObject): boolean
  /** Why the object cannot be counted against these resources. */
  complaint?(required: ReadonlySet<string>, object: KubeObject): string | undefined
  usage(object: KubeObject): Amounts | Promise<Amounts>
}

export function scopesOf({ spec }: ResourceQuota): Scope[] {
  const named = (spec?.scopes ?? []).map((scopeName) => ({ scopeName, operator: 'Exists' }))
  return [...named, ...(spec?.scopeSelector?.matchExpressions ?? [])]
}

/** Within every scope of the quota. */
export function isWithinScopes(evaluator: Evaluator, quota: ResourceQuota, object: KubeObject): boolean {
  return scopesOf(quota).every((scope) => evaluator.isWithin?.(scope, object) ?? false)
}

/** `value` is what the object has of the scope's kind, if anything: the name of its priority class. */
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

/** Resources that were counted under their own name before any could be. */
const ALIASED = new Set(['configmaps', 'resourcequotas', 'replicationcontrollers', 'secrets'])

/** Counts objects, whatever they are. */
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
