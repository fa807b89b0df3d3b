/** Pods and contexts for tests of pod rules. */
import type { Container, Pod, PodSpec, PodStatus } from '#apis/core/v1.ts'
import type { RuleContext, WriteContext } from '#apiserver/registry/resource.ts'
import { createVirtualClock } from '#lib/clock.ts'
import type { ObjectMeta } from '#meta/object.ts'
import { fieldErrorText } from '#meta/validation/field-error.ts'
import type { FieldError } from '#meta/validation/field-path.ts'
import { defaultPod } from '#model/pod-spec/defaults.ts'

/** Relevant gates of v1.36 that are off. */
const gatesOff = new Set(['ImageVolumeWithDigest', 'DRANodeAllocatableResources', 'GenericWorkload', 'SELinuxMount'])

export const NOW = '2024-05-06T07:08:09Z'

export function contextWith(overrides: Partial<RuleContext> = {}): WriteContext {
  const context: Partial<WriteContext> = {
    clock: createVirtualClock(Date.parse(NOW)),
    isEnabled: (gate) => !gatesOff.has(gate),
    allowPrivileged: true,
    ...overrides,
  }
  return context as WriteContext
}

export function web(patch: Partial<Container> = {}): Container {
  return { name: 'web', image: 'nginx:1', resources: {}, ...patch }
}

export interface PodPatch {
  readonly metadata?: ObjectMeta
  readonly spec?: Partial<PodSpec>
  readonly status?: PodStatus
}

/** A valid pod with the given changes. */
export function podOf({ metadata, spec, status = {} }: PodPatch = {}): Pod {
  const pod: Pod = {
    metadata: { name: 'p', namespace: 'default', generation: 1, ...metadata },
    spec: { containers: [web()], ...spec },
    status,
  }
  defaultPod(pod, () => true)
  return pod
}

export const textsOf = (errors: readonly FieldError[]): string[] => errors.map(fieldErrorText)
