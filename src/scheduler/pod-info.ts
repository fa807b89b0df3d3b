/** A pod as the scheduler sees it: what it asks for, read once. */
import type { Pod } from '#apis/core/v1.ts'
import type { Labels } from '#meta/labels.ts'
import { objectKey } from '#meta/object.ts'
import { quantityOf, quantityOfMilli } from '#meta/quantity.ts'
import { epochMsOf } from '#meta/time.ts'
import { podRequests } from '#model/pod-resources.ts'

import { type Amounts, amountsFrom } from './amounts.ts'
import { type PodTerms, podTermsOf } from './pod-terms.ts'

export interface HostPort {
  readonly protocol: string
  readonly ip: string
  readonly port: number
}

/** What a container that asks for nothing is taken to need, where nodes are compared: 0.1 CPU, 200 MiB. */
const GUESS = new Map([
  ['cpu', quantityOfMilli(100)],
  ['memory', quantityOf(200 << 20, 'BinarySI')],
])

export class PodInfo {
  readonly pod: Pod
  readonly uid: string
  readonly key: string
  readonly namespace: string
  readonly labels: Labels
  readonly priority: number
  readonly requests: Amounts
  /** With a guess for containers that ask for no CPU or memory. */
  readonly likely: Amounts
  readonly ports: readonly HostPort[]
  readonly terms: PodTerms
  #likeness: string | undefined

  /** `known`: the same pod a moment ago; what cannot have changed since is not read again. */
  constructor(pod: Pod, known?: PodInfo) {
    this.pod = pod
    this.uid = pod.metadata.uid ?? ''
    this.key = objectKey(pod)
    this.namespace = pod.metadata.namespace ?? ''
    this.labels = pod.metadata.labels
    this.priority = pod.spec.priority ?? 0
    const same = known !== undefined && asksTheSame(known.pod, pod) ? known : undefined
    this.requests = same?.requests ?? amountsFrom(podRequests(pod, { useStatus: true }))
    this.likely = same?.likely ?? amountsFrom(podRequests(pod, { useStatus: true, atLeast: GUESS }))
    this.ports = same?.ports ?? hostPortsOf(pod)
    this.terms = same?.terms ?? podTermsOf(pod)
  }

  get isTerminating(): boolean {
    return this.pod.metadata.deletionTimestamp !== undefined
  }

  /** When the kubelet took it up; Infinity before that. */
  get startMs(): number {
    const { startTime } = this.pod.status
    return startTime === undefined ? Infinity : epochMsOf(startTime)
  }

  /** The same for pods that no node, looked at by itself, can tell apart. */
  get likeness(): string {
    if (this.#likeness !== undefined) return this.#likeness
    const { nodeName, nodeSelector, affinity, tolerations, containers, initContainers, volumes } = this.pod.spec
    const images = [...(initContainers ?? []), ...containers].map(({ image }) => image)
    const { requests, likely, ports } = this
    const amounts = [requests, likely].map(({ others, ...rest }) => [rest, [...(others ?? [])]])
    const seen = [nodeName, nodeSelector, affinity?.nodeAffinity, tolerations, images, ports, amounts, volumes?.length]
    return (this.#likeness = JSON.stringify(seen))
  }
}

/** Parts that are equal are one and the same in versions of an object; no kubelet has granted anything else yet. */
function asksTheSame({ spec, status }: Pod, { spec: now, status: by }: Pod): boolean {
  if (ASKING.some((part) => spec[part] !== now[part])) return false
  return GRANTING.every((part) => status[part] === undefined && by[part] === undefined)
}

const ASKING = ['containers', 'initContainers', 'overhead', 'resources', 'affinity'] as const
const GRANTING = ['containerStatuses', 'initContainerStatuses', 'resources', 'allocatedResources'] as const

function hostPortsOf({ spec }: Pod): HostPort[] {
  const sidecars = (spec.initContainers ?? []).filter(({ restartPolicy }) => restartPolicy === 'Always')
  return [...spec.containers, ...sidecars].flatMap(({ ports = [] }) =>
    ports.flatMap(({ hostPort = 0, hostIP = '', protocol = 'TCP' }) =>
      hostPort > 0 ? [{ protocol, ip: hostIP === '' ? '0.0.0.0' : hostIP, port: hostPort }] : [],
    ),
  )
}
