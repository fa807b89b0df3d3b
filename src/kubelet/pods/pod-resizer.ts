/**
 * The resize of one pod in place: asked of the node, granted or put off, and then brought to the cgroups of its containers.
 * What is granted is written down before anything is changed.
 */
import type { Pod, PodCondition, PodSpec } from '#apis/core/v1.ts'
import { compareQuantities, parseQuantity } from '#meta/quantity.ts'
import { timeOf } from '#meta/time.ts'
import { podRequests, qosClassOf } from '#model/pod-resources.ts'

import { type ContainerRecord, isRunning } from '../container-runs.ts'
import { messageText } from '../cri/call-text.ts'
import { resized, resizeRestarts } from '../kubelet-notes.ts'
import {
  type Allocation,
  allocationOf,
  isGranted,
  type Measures,
  measuresOf,
  needsRestart,
  type PendingResize,
  type Resizable,
  resizesOf,
  resizeText,
  withAllocation,
} from '../pod-allocation.ts'
import type { Doom } from './container-ender.ts'
import { containerResources, type Enforcement, sandboxResources } from './linux-resources.ts'
import type { PodHost } from './pod-host.ts'
import { idOf } from './pod-probes.ts'

type Condition = Pick<PodCondition, 'reason' | 'message' | 'observedGeneration'> & { readonly sinceMs: number }

interface Change {
  readonly record: ContainerRecord
  readonly id: string
  readonly actual: Measures
  readonly wanted: Measures
}

export class PodResizer {
  readonly #host: PodHost
  readonly #doom: (record: ContainerRecord, doom: Doom) => void
  #allocation: Allocation
  /** What the pod asks for and has not been granted. */
  #pending: Condition | undefined
  /** What it was granted and does not have. */
  #inProgress: Condition | undefined

  constructor(host: PodHost, pod: Pod, doom: (record: ContainerRecord, doom: Doom) => void) {
    this.#host = host
    this.#doom = doom
    this.#allocation = host.allocations.get(pod.metadata.uid ?? '') ?? allocationOf(pod.spec)
  }

  /** The pod as it is granted. */
  granted(desired: Pod): Pod {
    return withAllocation(desired, this.#allocation)
  }

  /** It was admitted with what it asks for. */
  admitted(pod: Pod): void {
    this.#host.allocations.set(pod.metadata.uid ?? '', this.#allocation)
  }

  /** For the order in which waiting resizes are tried; undefined when none waits. */
  waitingOf(desired: Pod): PendingResize | undefined {
    if (this.#pending === undefined) return undefined
    const has = podRequests(this.granted(desired))
    const isMore = Array.from(podRequests(desired)).some(
      ([name, amount]) => compareQuantities(amount, has.get(name) ?? NONE) > 0,
    )
    const isGuaranteed = qosClassOf(desired) === 'Guaranteed'
    return { isMore, isGuaranteed, priority: desired.spec.priority ?? 0, sinceMs: this.#pending.sinceMs }
  }

  /** Whether it was granted something else than before. */
  consider(desired: Pod): boolean {
    const { metadata } = desired
    if (isGranted(desired.spec, this.#allocation)) {
      this.#pending = undefined
      return false
    }
    const infeasible = this.#host.grants.refuseResize(desired, this.granted(desired))
    const rejection = infeasible === undefined ? this.#host.resize(desired) : { reason: 'Infeasible', ...infeasible }
    const nowMs = this.#host.clock.now()
    const observedGeneration = metadata.generation ?? 0
    if (rejection === undefined) {
      this.#allocation = allocationOf(desired.spec)
      this.#host.allocations.set(metadata.uid ?? '', this.#allocation)
      this.#pending = undefined
      this.#inProgress = { observedGeneration, sinceMs: nowMs }
      this.#host.note(desired, resized('Started', resizeText(desired, {})))
      return true
    }
    const before = this.#pending
    const { text: message } = rejection
    const isSame = before?.observedGeneration === observedGeneration
    const reason = infeasible === undefined ? 'Deferred' : 'Infeasible'
    this.#pending = { reason, message, observedGeneration, sinceMs: before?.sinceMs ?? nowMs }
    if (isSame) return false
    this.#host.note(desired, resized(reason, resizeText(desired, { error: message }), rejection.reason))
    if (infeasible !== undefined) {
      this.#host.meters.family('kubelet_pod_infeasible_resizes_total').labels(infeasible.label).inc()
    }
    return false
  }

  /** Brings containers to what they are granted; whoever cannot be without a restart is to end. Whether anything was. */
  async actuate(pod: Pod, records: readonly ContainerRecord[], sandboxId: string | undefined): Promise<boolean> {
    const all = changesOf(pod.spec, records)
    const changes = all.filter(({ record, actual, wanted }) => {
      if (!needsRestart(record.spec, resizesOf(actual, wanted))) return true
      record.isDue = true
      record.restarts = undefined
      this.#doom(record, { why: resizeRestarts(record.spec.name) })
      return false
    })
    if (changes.length === 0) return false
    const { clock, meters } = this.#host
    this.#inProgress ??= { observedGeneration: pod.metadata.generation ?? 0, sinceMs: clock.now() }
    const startMs = clock.elapsed()
    let isDone = false
    try {
      await this.#refuseTooLittle(changes)
      await this.#tellSandbox(pod, sandboxId)
      const hasOwnCpus = this.#host.grants.hasOwnCpus(pod.metadata.uid ?? '')
      await this.#host.cgroups.grow(pod, hasOwnCpus)
      for (const name of ['memory', 'cpu'] as const) await this.#update(pod, changes, name)
      await this.#host.cgroups.ensure(pod, hasOwnCpus)
      isDone = true
    } catch (error) {
      this.#fail(pod, messageText(error))
    }
    const durations = meters.family('kubelet_pod_resize_duration_milliseconds').labels(String(isDone))
    durations.observe(clock.elapsed() - startMs)
    return true
  }

  /** Told when all that run have what they are granted. */
  settle(pod: Pod, records: readonly ContainerRecord[]): void {
    if (this.#inProgress === undefined || changesOf(pod.spec, records).length > 0) return
    const { observedGeneration } = this.#inProgress
    this.#inProgress = undefined
    this.#host.note(pod, resized('Completed', resizeText(pod, { generation: observedGeneration })))
  }

  get conditions(): PodCondition[] {
    return [
      ...conditionOf('PodResizePending', this.#pending, this.#host.clock.now()),
      ...conditionOf('PodResizeInProgress', this.#inProgress, this.#host.clock.now()),
    ]
  }

  #fail(pod: Pod, message: string): void {
    const before = this.#inProgress
    if (before?.message === message) return
    const { generation = 0 } = pod.metadata
    const observedGeneration = before?.observedGeneration ?? generation
    this.#inProgress = { reason: 'Error', message, observedGeneration, sinceMs: this.#host.clock.now() }
    const text = resizeText(pod, { generation: observedGeneration, error: message })
    this.#host.note(pod, resized('Error', text))
  }

  /** Who would have less than it uses would be killed. */
  async #refuseTooLittle(changes: readonly Change[]): Promise<void> {
    const faults: string[] = []
    for (const { record, id, actual, wanted } of changes) {
      const { limit } = wanted.memory
      if (limit === 0 || (actual.memory.limit !== 0 && limit >= actual.memory.limit)) continue
      const { stats } = await this.#host.runtime.containerStats({ containerId: id })
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

  /** For runtimes that want to know; nothing depends on it. */
  async #tellSandbox(pod: Pod, podSandboxId: string | undefined): Promise<void> {
    if (podSandboxId === undefined) return
    const resources = sandboxResources(pod, this.#enforcement(pod))
    await this.#host.runtime.updatePodSandboxResources({ podSandboxId, resources }).catch((error: unknown) => {
      this.#host.log.v(4)?.info('The runtime does not take resources of a sandbox', { err: messageText(error) })
    })
  }

  #enforcement({ metadata: { uid = '' } }: Pod, container?: string): PodHost['facts'] & Enforcement {
    const { facts, grants } = this.#host
    return { ...facts, hasOwnCpus: grants.hasOwnCpus(uid, container) }
  }

  /** Of one resource, those that shrink first, so that all fit at every moment. */
  async #update(pod: Pod, changes: readonly Change[], name: Resizable): Promise<void> {
    const concerned = changes.filter(({ actual, wanted }) => resizesOf(actual, wanted).includes(name))
    for (const { record, id } of concerned.toSorted((a, b) => growthOf(a, name) - growthOf(b, name))) {
      const next = mixed(record, name)
      const enforcement = this.#enforcement(pod, record.spec.name)
      const linux = containerResources(pod, { ...record.spec, resources: next }, enforcement)
      await this.#host.runtime.updateContainerResources({ containerId: id, linux })
      record.actual = next
    }
  }
}

const NONE = parseQuantity('0')

function changesOf(spec: PodSpec, records: readonly ContainerRecord[]): Change[] {
  return records.flatMap((record): Change[] => {
    const id = idOf(record)
    if (id === undefined || record.actual === undefined || record.role === 'ephemeral' || !isRunning(record)) return []
    const actual = measuresOf(record.actual, spec.resources)
    const wanted = measuresOf(record.spec.resources, spec.resources)
    return resizesOf(actual, wanted).length === 0 ? [] : [{ record, id, actual, wanted }]
  })
}

const growthOf = ({ actual, wanted }: Change, name: Resizable): number =>
  wanted[name].limit - actual[name].limit || wanted[name].request - actual[name].request

/** What it has, but of one resource what it is to have. */
function mixed({ spec, actual = {} }: ContainerRecord, name: Resizable): NonNullable<ContainerRecord['actual']> {
  const next: { limits?: Record<string, string>; requests?: Record<string, string> } = {}
  for (const part of ['limits', 'requests'] as const) {
    const wanted = spec.resources?.[part]?.[name]
    const list = { ...actual[part], ...(wanted !== undefined && { [name]: wanted }) }
    if (wanted === undefined) delete list[name]
    if (Object.keys(list).length > 0) next[part] = list
  }
  return next
}

function conditionOf(type: string, condition: Condition | undefined, nowMs: number): PodCondition[] {
  if (condition === undefined) return []
  const { sinceMs, reason, message, observedGeneration } = condition
  return [
    {
      type,
      ...(observedGeneration !== undefined && { observedGeneration }),
      status: 'True',
      lastProbeTime: timeOf(nowMs),
      lastTransitionTime: timeOf(sinceMs),
      ...(reason !== undefined && { reason }),
      ...(message !== undefined && { message }),
    },
  ]
}
