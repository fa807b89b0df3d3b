/** The `resize` subresource of pods: changes CPU and memory of a running pod in place. */
import type { Container, Pod, PodSpec, ResourceRequirements } from '#apis/core/v1.ts'
import type { PartRules, RuleContext } from '#apiserver/registry/resource.ts'
import { semanticEqual } from '#meta/object.ts'
import { asJson, collectErrors, type FieldError, fieldPath, type FieldPath } from '#meta/validation/field-path.ts'
import { computeQosClass, qosClassOf } from '#model/pod-resources.ts'
import { isMirrorPod } from '#model/pod-spec/annotations.ts'
import { dropDisabledPodFields } from '#model/pod-spec/gated-fields.ts'
import { podOptions } from '#model/pod-spec/options.ts'
import type { PodOptions } from '#model/pod-spec/rules.ts'
import { isSidecar, isWindows } from '#model/pod-spec/walk.ts'

import { growGeneration, keptMetadata } from './ephemeral-containers.ts'
import { sameContainer, sameSpec } from './same-spec.ts'
import { validatePod } from './validation.ts'

type ResourceList = Record<string, string>

const ONLY_COMPUTE = 'only cpu and memory resources are mutable'

export const resize: PartRules<Pod> = {
  prepareUpdate(next, old, context) {
    keepAllButResources(next, old, context)
    dropDisabledPodFields(next.spec, old.spec, context)
    growGeneration(next, old)
  },
  validateUpdate: validateResize,
}

/** Validation rejects added and removed containers. */
function keepAllButResources(next: Pod, old: Pod, { isEnabled }: RuleContext): void {
  const { containers, initContainers = [], resources } = next.spec
  if (containers?.length !== old.spec.containers?.length) return
  if (initContainers.length !== (old.spec.initContainers ?? []).length) return
  next.spec = { ...old.spec, containers: resized(containers, old.spec.containers) }
  if (initContainers.length > 0) next.spec.initContainers = resized(initContainers, old.spec.initContainers ?? [])
  if (isEnabled('InPlacePodLevelResourcesVerticalScaling')) {
    if (resources === undefined) delete next.spec.resources
    else next.spec.resources = resources
  }
  next.status = old.status
  next.metadata = keptMetadata(next.metadata, old.metadata)
}

/** The old containers with new resources; validation rejects renamed ones. */
function resized(next: Container[], old: readonly Container[]): Container[] {
  if (next.some(({ name }, at) => name !== old[at]?.name)) return next
  return next.map(({ resources, resizePolicy }, at) => {
    const { resizePolicy: _, ...rest } = old[at] as Container
    return { ...rest, resources, ...(resizePolicy !== undefined && { resizePolicy }) }
  })
}

function validateResize(next: Pod, old: Pod, context: RuleContext): FieldError[] {
  if (isMirrorPod(old.metadata)) return [fieldPath('[]').forbidden('static pods cannot be resized')]
  if (isWindows(old.spec)) return [fieldPath('[]').forbidden('windows pods cannot be resized')]
  const options = podOptions(context, old)
  const errors = [...validatePod(next, options), ...validateResizable(next, old, options)]
  if (hasPodResources(old.spec) || hasPodResources(next.spec)) {
    if (!options.podLevelResize) return [...errors, podLevelRefused()]
    errors.push(...validatePodLevel(next.spec, old.spec))
  }
  if ((old.status.nodeAllocatableResourceClaimStatuses ?? []).length > 0) {
    errors.push(fieldPath('spec').forbidden('pods with node allocatable resource claims cannot be resized'))
  }
  const order = [
    ...validateOrder(next.spec, old.spec, 'containers'),
    ...validateOrder(next.spec, old.spec, 'initContainers'),
  ]
  if (order.length > 0) return [...errors, ...order]
  const all = [...errors, ...validateContainers(next.spec, old.spec, context)]
  if (all.length > 0 || sameSpec(masked(next.spec, old.spec), old.spec)) return all
  return [fieldPath('spec').forbidden(ONLY_COMPUTE)]
}

function podLevelRefused(): FieldError {
  const gate = 'InPlacePodLevelResourcesVerticalScalingEnabled feature gate is disabled'
  return fieldPath('[]').forbidden(`resize of pods with pod-level resources is forbidden when ${gate}`)
}

function validateResizable(next: Pod, old: Pod, { podLevelResources }: PodOptions): FieldError[] {
  // A kubelet with support reports allocated resources.
  const running = old.status.containerStatuses?.find(({ state }) => state.running !== undefined)
  return collectErrors(
    qosClassOf(old, podLevelResources) !== computeQosClass(next.spec, podLevelResources) &&
      fieldPath('spec').invalid(
        asJson(next.status.qosClass ?? ''),
        'Pod QOS Class may not change as a result of resizing',
      ),
    running !== undefined &&
      running.resources === undefined &&
      fieldPath('spec').forbidden('Pod running on node without support for resize'),
  )
}

function hasPodResources({ resources }: PodSpec): boolean {
  return Object.keys(resources?.requests ?? {}).length + Object.keys(resources?.limits ?? {}).length > 0
}

function validatePodLevel(next: PodSpec, old: PodSpec): FieldError[] {
  const field = fieldPath('spec.resources')
  if (old.resources !== undefined && next.resources === undefined) {
    return [field.forbidden('pod-level resources cannot be removed')]
  }
  const errors = validateRemoved(field, next.resources, old.resources, 'pod-level resource')
  if (semanticEqual(withOldCompute(next.resources, old.resources), old.resources)) return errors
  return [...errors, fieldPath('spec').forbidden('only cpu and memory resources are mutable at pod-level')]
}

function validateRemoved(
  path: FieldPath,
  next: ResourceRequirements | undefined,
  old: ResourceRequirements | undefined,
  what: string,
): FieldError[] {
  return (['requests', 'limits'] as const)
    .filter((name) => Object.keys(old?.[name] ?? {}).some((one) => !Object.hasOwn(next?.[name] ?? {}, one)))
    .map((name) => path.child(name).forbidden(`${what} ${name} cannot be removed`))
}

function validateOrder(next: PodSpec, old: PodSpec, name: 'containers' | 'initContainers'): FieldError[] {
  const field = fieldPath('spec').child(name)
  const [after, before] = [next[name] ?? [], old[name] ?? []]
  if (after.length !== before.length) return [field.forbidden(`${name} may not be added or removed on resize`)]
  return field.each(before, (path, one, at) => {
    if (after[at]?.name === one.name) return []
    return [path.child('name').forbidden(`${name} may not be renamed or reordered on resize`)]
  })
}

function validateContainers(next: PodSpec, old: PodSpec, { isEnabled }: RuleContext): FieldError[] {
  const initToo = isEnabled('InPlacePodVerticalScalingInitContainers')
  const pairs = (name: 'containers' | 'initContainers'): [Container, Container, FieldPath][] =>
    (old[name] ?? []).map((one, at) => [next[name]?.[at] ?? one, one, fieldPath('spec').child(name).index(at)])
  const removed = ([after, before, path]: [Container, Container, FieldPath]): FieldError[] =>
    validateRemoved(path.child('resources'), after.resources, before.resources, 'resource')
  return [
    ...pairs('initContainers')
      .filter(([, before]) => initToo || isSidecar(before))
      .flatMap(removed),
    ...pairs('containers').flatMap(removed),
    ...pairs('containers').flatMap(([after, before]) =>
      sameContainer(maskedContainer(after, before), before) ? [] : [fieldPath('spec').forbidden(ONLY_COMPUTE)],
    ),
    ...pairs('initContainers').flatMap(([after, before, path]) =>
      initToo || isSidecar(after)
        ? validateInitContainer(path, after, before)
        : sameContainer(after, before)
          ? []
          : [fieldPath('spec').forbidden('resources for non-sidecar init containers are immutable')],
    ),
  ]
}

function validateInitContainer(path: FieldPath, next: Container, old: Container): FieldError[] {
  const errors: FieldError[] = []
  if (!sameContainer(maskedContainer(next, old), old)) {
    errors.push(path.forbidden('only cpu and memory resources for init or sidecar containers are mutable'))
  }
  if (isSidecar(next) || sameContainer(next, old)) return errors
  const complaint = 'non-sidecar init containers with a resize policy of RestartContainer cannot be resized'
  const restarting = (next.resizePolicy ?? []).filter(({ restartPolicy }) => restartPolicy === 'RestartContainer')
  return [...errors, ...restarting.map(() => path.forbidden(complaint))]
}

/** `next` with the old amounts of mutable fields. */
function masked(next: PodSpec, old: PodSpec): PodSpec {
  const mask = (containers: readonly Container[] = [], before: readonly Container[] = []): Container[] =>
    containers.map((one, at) => maskedContainer(one, before[at] ?? one))
  const { resources, ...spec } = next
  const podWide = withOldCompute(resources, old.resources)
  return {
    ...spec,
    ...(podWide !== undefined && { resources: podWide }),
    containers: mask(next.containers, old.containers),
    ...(next.initContainers !== undefined && { initContainers: mask(next.initContainers, old.initContainers) }),
  }
}

/** Claims are dropped as in upstream, so that any change of them is rejected. */
function maskedContainer(next: Container, old: Container): Container {
  const { claims: _, ...resources } = withOldCompute(next.resources, old.resources) ?? {}
  return { ...next, resources }
}

/** Undefined if nothing is left. */
function withOldCompute(
  next: ResourceRequirements | undefined,
  old: ResourceRequirements | undefined,
): ResourceRequirements | undefined {
  const swap = (list: ResourceList = {}, before: ResourceList = {}): ResourceList | undefined => {
    const { cpu: _, memory: __, ...rest } = list
    const compute = Object.entries(before).filter(([name]) => name === 'cpu' || name === 'memory')
    const swapped = { ...rest, ...Object.fromEntries(compute) }
    return Object.keys(swapped).length === 0 ? undefined : swapped
  }
  const limits = swap(next?.limits, old?.limits)
  const requests = swap(next?.requests, old?.requests)
  const claims = next?.claims
  if (limits === undefined && requests === undefined && claims === undefined) return undefined
  return { ...(limits && { limits }), ...(requests && { requests }), ...(claims && { claims }) }
}
