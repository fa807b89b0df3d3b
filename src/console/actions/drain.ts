/** Drains a node: cordons it, evicts its pods, and waits until they are gone. */
import type { Pod } from '#apis/core/v1.ts'

import { clusterPath, objectPath } from '../api/kinds.ts'
import { RequestError, sendForJson } from '../api/request.ts'
import { sleep } from '../browser/time.ts'
import type { Target } from './action.ts'
import { type DrainPlan, evict } from './drain-plan.ts'
import { mergeSpec } from './plans.ts'
import { runRequest } from './run-action.ts'

export interface DrainedPod {
  /** `namespace/name` */
  readonly name: string
  readonly state: 'waiting' | 'ending' | 'refused' | 'gone'
  /** The server's words, such as those of a PodDisruptionBudget. */
  readonly message: string
}

export interface Drain {
  readonly pods: readonly DrainedPod[]
}

export interface DrainOptions {
  readonly cluster: string
  readonly target: Target
  readonly plan: DrainPlan
  readonly report: (drain: Drain) => void
  readonly signal: AbortSignal
}

/** As kubectl drain: a PodDisruptionBudget may permit the eviction later. */
const RETRY_MS = 5000
const LOOK_MS = 1000

/** True: the pods are gone. False: it was stopped. Rejects with RequestError. */
export async function drainNode({ cluster, target, plan, report, signal }: DrainOptions): Promise<boolean> {
  await runRequest(cluster, mergeSpec(target, { unschedulable: true }), signal)
  const states = new Map<Pod, DrainedPod>()
  const set = (pod: Pod, state: DrainedPod['state'], message = ''): void => {
    states.set(pod, { name: `${pod.metadata.namespace ?? ''}/${pod.metadata.name ?? ''}`, state, message })
    report({ pods: [...states.values()] })
  }
  const failed = new AbortController()
  const running = AbortSignal.any([signal, failed.signal])
  for (const pod of plan.evicted) set(pod, 'waiting')
  try {
    await Promise.all(plan.evicted.map((pod) => evictUntilGone(cluster, pod, set, running)))
  } catch (error) {
    if (signal.aborted) return false
    failed.abort()
    throw error
  }
  return true
}

type SetState = (pod: Pod, state: DrainedPod['state'], message?: string) => void

async function evictUntilGone(cluster: string, pod: Pod, set: SetState, signal: AbortSignal): Promise<void> {
  for (;;) {
    try {
      await runRequest(cluster, evict(pod), signal)
      break
    } catch (error) {
      if (!(error instanceof RequestError)) throw error
      if (error.code === 404 || error.code === 409) break
      set(pod, 'refused', error.message)
      if (error.code !== 429 && error.code !== 0) throw error
      await sleep(RETRY_MS, signal)
    }
  }
  set(pod, 'ending')
  while (await isThere(cluster, pod, signal)) await sleep(LOOK_MS, signal)
  set(pod, 'gone')
}

async function isThere(cluster: string, { metadata }: Pod, signal: AbortSignal): Promise<boolean> {
  const { name = '', namespace = '', uid } = metadata
  const pods = { group: '', version: 'v1', plural: 'pods' }
  try {
    const found = await sendForJson<Pod>(clusterPath(cluster, objectPath(pods, { namespace, name })), { signal })
    return found.metadata.uid === uid
  } catch (error) {
    if (error instanceof RequestError && error.code === 404) return false
    if (error instanceof RequestError && error.code === 0) return true
    throw error
  }
}
