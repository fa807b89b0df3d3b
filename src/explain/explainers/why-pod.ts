/** Explains a pod on the way to a larger object: whatever keeps it from being ready. */
import { type Pod, Pods } from '#apis/core/v1.ts'

import { type Finding, nameOf, notKnown } from '../explanation.ts'
import type { Reader } from '../reader.ts'
import { containers } from './containers.ts'
import { eviction } from './eviction.ts'
import { scheduling } from './scheduling.ts'
import { termination } from './termination.ts'

const OF_PODS = [termination, scheduling, eviction, containers]

export async function whyPod(pod: Pod, reader: Reader): Promise<Finding> {
  const target = { kind: Pods, object: pod }
  const explainer = OF_PODS.find((one) => one.applies(target))
  return (await explainer?.explain(target, reader)) ?? notKnown(`no explainer finds anything wrong with ${nameOf(pod)}`)
}
