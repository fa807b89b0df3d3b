/**
 * Resizes one pod in place: allocates or defers the new resources, then updates the cgroups of its containers. The
 * checkpoint is written first.
 */
import { messageText } from '#cri/call-text.ts'

import { type ContainerRecord } from '../pod/container-runs.ts'
import { resized } from '../pod/events.ts'
import { containerResources, type Enforcement, sandboxResources } from '../pod/linux-resources.ts'
import { allocationOf, isGranted, type Resizable, resizesOf, resizeText } from '../pod/pod-allocation.ts'
import { type ContainerResize, containerResizes, restartsForResize } from '../pod/resize-state.ts'
import type { PodContext } from './pod-context.ts'
import type { PodHost } from './pod-host.ts'
import { applyAllocation, type PodState, uidOf } from './pod-state.ts'

type ResizeContext = Pick<PodContext, 'host' | 'state'>

/** Returns true if a different allocation was granted. */
export function allocateResize({ host, state }: ResizeContext): boolean {
  const { desired, pod, resize } = state
  if (isGranted(desired.spec, resize.allocation)) {
    resize.pending = undefined
    return false
  }
  const infeasible = host.containerManager.refuseResize(desired, pod)
  const rejection = infeasible === undefined ? host.admission.resize(desired) : { reason: 'Infeasible', ...infeasible }
  const nowMs = host.clock.now()
  const observedGeneration = desired.metadata.generation ?? 0
  if (rejection === undefined) {
    resize.allocation = allocationOf(desired.spec)
    host.allocations.set(uidOf(state), resize.allocation)
    resize.pending = undefined
    resize.inProgress = { observedGeneration, sinceMs: nowMs }
    host.recordEvent(desired, resized('Started', resizeText(desired, {})))
    applyAllocation(state)
    return true
  }
  const before = resize.pending
  const { text: message } = rejection
  const reason = infeasible === undefined ? 'Deferred' : 'Infeasible'
  resize.pending = { reason, message, observedGeneration, sinceMs: before?.sinceMs ?? nowMs }
  if (before?.observedGeneration === observedGeneration) return false
  host.recordEvent(desired, resized(reason, resizeText(desired, { error: message }), rejection.reason))
  if (infeasible !== undefined) {
    host.meters.family('kubelet_pod_infeasible_resizes_total').labels(infeasible.label).inc()
  }
  return false
}

/** Applies the allocation to running containers that need no restart. A failure is retried by the next sync. */
export async function applyResize(context: ResizeContext): Promise<void> {
  const { host, state } = context
  const { clock, meters, cgroups, containerManager } = host
  const { pod } = state
  const resizes = containerResizes(pod.spec, state.records).filter((each) => !restartsForResize(each))
  state.resize.inProgress ??= { observedGeneration: pod.metadata.generation ?? 0, sinceMs: clock.now() }
  const startMs = clock.elapsed()
  let isDone = false
  try {
    await rejectBelowUsage(host, resizes)
    await updateSandboxResources(host, state)
    const hasExclusiveCpus = containerManager.hasExclusiveCpus(uidOf(state))
    await cgroups.grow(pod, hasExclusiveCpus)
    for (const name of ['memory', 'cpu'] as const) await updateContainers(context, resizes, name)
    await cgroups.ensure(pod, hasExclusiveCpus)
    isDone = true
  } catch (error) {
    fail(context, messageText(error))
  }
  const durations = meters.family('kubelet_pod_resize_duration_milliseconds').labels(String(isDone))
  durations.observe(clock.elapsed() - startMs)
}

/** Records that all running containers have their allocation. */
export function completeResize({ host, state: { pod, resize } }: ResizeContext): void {
  const generation = resize.inProgress?.observedGeneration
  resize.inProgress = undefined
  host.recordEvent(pod, resized('Completed', resizeText(pod, { generation })))
}

function fail({ host, state: { pod, resize } }: ResizeContext, message: string): void {
  const before = resize.inProgress
  if (before?.message === message) return
  const observedGeneration = before?.observedGeneration ?? pod.metadata.generation ?? 0
  resize.inProgress = { reason: 'Error', message, observedGeneration, sinceMs: host.clock.now() }
  const text = resizeText(pod, { generation: observedGeneration, error: message })
  host.recordEvent(pod, resized('Error', text))
}

/** Rejects a memory limit below the current usage, because the container would be killed. */
async function rejectBelowUsage({ runtime }: PodHost, resizes: readonly ContainerResize[]): Promise<void> {
  const faults: string[] = []
  for (const { record, id, actual, wanted } of resizes) {
    const { limit } = wanted.memory
    if (limit === 0 || (actual.memory.limit !== 0 && limit >= actual.memory.limit)) continue
    const { stats } = await runtime.containerStats({ containerId: id })
    const used = Number(stats?.memory?.usageBytes?.value ?? 0)
    if (used < limit) continue
    faults.push(
      `attempting to set container "${record.spec.name}" memory limit (${limit}) below current usage (${used})`,
    )
  }
  if (faults.length === 0) return
  const text = faults.length === 1 ? faults[0] : `[${faults.join(', ')}]`
  throw new Error(`cannot decrease memory limits: ${text}`)
}

/** Informs the runtime; failures are ignored. */
async function updateSandboxResources(host: PodHost, { pod, sandbox }: PodState): Promise<void> {
  if (sandbox === undefined) return
  const resources = sandboxResources(pod, enforcementOf(host, pod.metadata.uid))
  await host.runtime.updatePodSandboxResources({ podSandboxId: sandbox.id, resources }).catch((error: unknown) => {
    host.log.v(4)?.info('The runtime does not support updates of sandbox resources', { err: messageText(error) })
  })
}

function enforcementOf(
  { facts, containerManager }: PodHost,
  uid: string = '',
  container?: string,
): PodHost['facts'] & Enforcement {
  return { ...facts, hasExclusiveCpus: containerManager.hasExclusiveCpus(uid, container) }
}

/** Updates one resource, decreases first, so that the sum fits at every moment. */
async function updateContainers(
  { host, state: { pod } }: ResizeContext,
  resizes: readonly ContainerResize[],
  name: Resizable,
): Promise<void> {
  const concerned = resizes.filter(({ actual, wanted }) => resizesOf(actual, wanted).includes(name))
  for (const { record, id } of concerned.toSorted((a, b) => growthOf(a, name) - growthOf(b, name))) {
    const next = withResource(record, name)
    const enforcement = enforcementOf(host, pod.metadata.uid, record.spec.name)
    const linux = containerResources(pod, { ...record.spec, resources: next }, enforcement)
    await host.runtime.updateContainerResources({ containerId: id, linux })
    record.actual = next
  }
}

const growthOf = ({ actual, wanted }: ContainerResize, name: Resizable): number =>
  wanted[name].limit - actual[name].limit || wanted[name].request - actual[name].request

/** The actual resources, with one resource replaced by its desired value. */
function withResource({ spec, actual = {} }: ContainerRecord, name: Resizable): NonNullable<ContainerRecord['actual']> {
  const next: { limits?: Record<string, string>; requests?: Record<string, string> } = {}
  for (const part of ['limits', 'requests'] as const) {
    const wanted = spec.resources?.[part]?.[name]
    const list = { ...actual[part], ...(wanted !== undefined && { [name]: wanted }) }
    if (wanted === undefined) delete list[name]
    if (Object.keys(list).length > 0) next[part] = list
  }
  return next
}
