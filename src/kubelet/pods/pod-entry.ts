/** Whether a pod is taken: by the rules of the node, where there is room, with what it is to have of its own. */
import type { Pod } from '#apis/core/v1.ts'

import { isCritical, type Rejection } from '../admission-rules.ts'
import { rejectionLabel } from '../pod-admission.ts'
import type { PodHost } from './pod-host.ts'

/** Undefined: it is taken. Others make room for one that is critical. */
export async function enterNode(host: PodHost, pod: Pod): Promise<Rejection | undefined> {
  let rejection = host.admit(pod, false)
  const isShort = rejection?.reason.startsWith('OutOf') === true && isCritical(pod)
  if (isShort && (await host.preempt(pod))) rejection = host.admit(pod, false)
  rejection ??= await grantAside(host, pod)
  if (rejection !== undefined) {
    host.meters.family('kubelet_admission_rejections_total').labels(rejectionLabel(rejection)).inc()
  }
  return rejection
}

async function grantAside(host: PodHost, pod: Pod): Promise<Rejection | undefined> {
  const rejection = await host.grants.admit(pod)
  if (rejection !== undefined) host.release(pod)
  return rejection
}
