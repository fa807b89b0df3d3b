/** Helpers for CustomResourceDefinitions: versions, names and conditions. */
import { isDeepStrictEqual } from 'node:util'

import type {
  CustomResourceDefinition,
  CustomResourceDefinitionCondition,
  CustomResourceDefinitionVersion,
} from '#apis/apiextensions/v1.ts'
import { timeOf } from '#meta/time.ts'

export type Condition = Pick<CustomResourceDefinitionCondition, 'type' | 'status' | 'reason' | 'message'>

export const CLEANUP_FINALIZER = 'customresourcecleanup.apiextensions.k8s.io'

export function isTrue({ status }: CustomResourceDefinition, type: string): boolean {
  return (status?.conditions ?? []).some((condition) => condition.type === type && condition.status === 'True')
}

/**
 * Whether the definition accepts no new objects: it is being deleted. The condition Terminating turns false when the last
 * object is gone, although another finalizer may keep the definition; an object created then would never be deleted.
 */
export function isTerminating(definition: CustomResourceDefinition): boolean {
  return definition.metadata.deletionTimestamp !== undefined || isTrue(definition, 'Terminating')
}

/** The conditions with this one, in its position. The time is that of the last change of its status. */
export function withCondition(
  conditions: readonly CustomResourceDefinitionCondition[],
  { type, status, reason, message }: Condition,
  nowMs: number,
): CustomResourceDefinitionCondition[] {
  const before = conditions.find((one) => one.type === type)
  const isSame = before?.status === status && before.lastTransitionTime !== null
  const condition: CustomResourceDefinitionCondition = {
    type,
    status,
    lastTransitionTime: isSame ? before.lastTransitionTime : timeOf(nowMs),
    ...(reason !== undefined && { reason }),
    ...(message !== undefined && { message }),
  }
  return before === undefined
    ? [...conditions, condition]
    : conditions.map((one) => (one.type === type ? condition : one))
}

/** A definition is served as soon as its names are accepted. */
export function isServed(definition: CustomResourceDefinition): boolean {
  return isTrue(definition, 'NamesAccepted') || isTrue(definition, 'Established')
}

export function storageVersionOf({ spec }: CustomResourceDefinition): CustomResourceDefinitionVersion | undefined {
  return spec.versions.find(({ storage }) => storage)
}

/** True if both show objects equally. A deletion increments the generation without changing that. */
export function looksAs(next: CustomResourceDefinition, before: CustomResourceDefinition): boolean {
  if (next.metadata.uid !== before.metadata.uid) return false
  if (!isDeepStrictEqual(next.status.acceptedNames, before.status.acceptedNames)) return false
  return next.metadata.generation === before.metadata.generation || isDeepStrictEqual(next.spec, before.spec)
}
