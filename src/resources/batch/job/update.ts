/** Validates updates of a Job: hardly any field may change after its start, more while it is suspended. */
import type { Job, JobSpec } from '#apis/batch/v1.ts'
import type { Container, PodSpec, PodTemplateSpec } from '#apis/core/v1.ts'
import type { RuleContext } from '#apiserver/registry/resource.ts'
import { type FieldError, fieldPath } from '#meta/validation/field-path.ts'
import { immutable } from '#meta/validation/rules.ts'

import { isIndexed } from './spec.ts'
import { hasCondition } from './status.ts'

const fixed = ['completionMode', 'podFailurePolicy', 'backoffLimitPerIndex', 'managedBy', 'successPolicy'] as const

export function validateJobUpdate(next: Job, old: Job, context: RuleContext): FieldError[] {
  return [
    ...validateCompletions(next.spec, old.spec),
    ...immutable(fieldPath('spec.selector'), next.spec.selector, old.spec.selector),
    ...validateTemplateUpdate(next.spec.template, old, context),
    ...fixed.flatMap((name) => immutable(fieldPath(`spec.${name}`), next.spec[name], old.spec[name])),
  ]
}

/** An indexed Job is scaled by completions and parallelism together. */
function validateCompletions(next: JobSpec, old: JobSpec): FieldError[] {
  if (!isIndexed(next)) return immutable(fieldPath('spec.completions'), next.completions, old.completions)
  const { completions, parallelism } = next
  if (completions === undefined || completions === old.completions || completions === parallelism) return []
  return [fieldPath('spec.completions').invalid(completions, 'can only be modified in tandem with spec.parallelism')]
}

function validateTemplateUpdate(next: PodTemplateSpec, old: Job, { isEnabled }: RuleContext): FieldError[] {
  const field = fieldPath('spec.template')
  const isSuspended = old.spec.suspend === true
  const hasStarted = old.status.startTime !== undefined
  const isQuiet = (!hasStarted || hasCondition(old, 'Suspended')) && (old.status.active ?? 0) === 0
  const mayMove = isEnabled('MutableSchedulingDirectivesForSuspendedJobs') ? isQuiet : !hasStarted
  const expected = isSuspended && mayMove ? moved(old.spec.template, next) : old.spec.template
  const mayResize = isSuspended && isQuiet && isEnabled('MutablePodResourcesForSuspendedJobs')
  if (!mayResize) return immutable(field, next, expected)
  return immutable(field.child('spec'), next.spec, resized(expected.spec, next.spec))
}

/** `template` with the scheduling directives of `next`. */
function moved(template: PodTemplateSpec, next: PodTemplateSpec): PodTemplateSpec {
  const { labels, annotations } = next.metadata
  const { nodeSelector, tolerations, schedulingGates, affinity } = next.spec
  const affinityNow = { ...template.spec.affinity, nodeAffinity: affinity?.nodeAffinity }
  return {
    metadata: defined({ ...template.metadata, labels, annotations }),
    spec: defined({ ...template.spec, nodeSelector, tolerations, schedulingGates, affinity: defined(affinityNow) }),
  }
}

/** `spec` with the container resources of `next`, if the containers are the same. */
function resized(spec: PodSpec, next: PodSpec): PodSpec {
  const lists = (['containers', 'initContainers'] as const).map((list) => {
    const [mine, theirs] = [spec[list] ?? [], next[list] ?? []]
    return mine.length === theirs.length ? mine.map((one, at) => withResources(one, theirs[at])) : mine
  })
  const [containers = [], initContainers] = lists
  return defined({ ...spec, containers, initContainers })
}

function withResources(container: Container, other: Container | undefined): Container {
  if (other === undefined || other.name !== container.name) return container
  return defined({ ...container, resources: other.resources })
}

/** Without undefined members. */
function defined<T extends object>(value: { [K in keyof T]: T[K] | undefined }): T {
  return Object.fromEntries(Object.entries(value).filter(([, member]) => member !== undefined)) as T
}
