/** A pod with its resource requests and scheduling terms, which are computed once. */
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

/** Upstream's default requests for scoring: 0.1 CPU, 200 MiB. */
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
  /** Includes default requests for containers without CPU or memory requests. */
  readonly likely: Amounts
  readonly ports: readonly HostPort[]
  readonly terms: PodTerms
  #equivalenceClass: string | undefined

  /** `known` is the previous version of the pod; unchanged parts are reused. */
  constructor(pod: Pod, known?: PodInfo) {
    this.pod = pod
    this.uid = pod.metadata.uid ?? ''
    this.key = objectKey(pod)
    this.namespace = pod.metadata.namespace ?? ''
    this.labels = pod.metadata.labels
    this.priority = pod.spec.priority ?? 0
    const same = known !== undefined && hasSameRequests(known.pod, pod) ? known : undefined
    this.requests = same?.requests ?? amountsFrom(podRequests(pod, { useStatus: true }))
    this.likely = same?.likely ?? amountsFrom(podRequests(pod, { useStatus: true, atLeast: GUESS }))
    this.ports = same?.ports ?? hostPortsOf(pod)
    this.terms = same?.terms ?? podTermsOf(pod)
  }

  get isTerminating(): boolean {
    return this.pod.metadata.deletionTimestamp !== undefined
  }

  /** The start time; Infinity before the kubelet has set it. */
  get startMs(): number {
    const { startTime } = this.pod.status
    return startTime === undefined ? Infinity : epochMsOf(startTime)
  }

  /** Equal for pods that no single node can distinguish. */
  get equivalenceClass(): string {
    if (this.#equivalenceClass !== undefined) return this.#equivalenceClass
    const { nodeName, nodeSelector, affinity, tolerations, containers, initContainers, volumes } = this.pod.spec
    const images = [...(initContainers ?? []), ...containers].map(({ image }) => image)
    const { requests, likely, ports } = this
    const amounts = [requests, likely].map(({ others, ...rest }) => [rest, [...(others ?? [])]])
    const seen = [nodeName, nodeSelector, affinity?.nodeAffinity, tolerations, images, ports, amounts, volumes?.length]
    return (this.#equivalenceClass = JSON.stringify(seen))
  }
}

/** Equal parts are identical objects in versions of an object (interning); compares those that affect requests. */
function hasSameRequests({ spec, status }: Pod, { spec: now, status: by }: Pod): boolean {
  if (REQUEST_FIELDS.some((part) => spec[part] !== now[part])) return false
  return ALLOCATION_FIELDS.every((part) => status[part] === undefined && by[part] === undefined)
}

const REQUEST_FIELDS = ['containers', 'initContainers', 'overhead', 'resources', 'affinity'] as const
const ALLOCATION_FIELDS = ['containerStatuses', 'initContainerStatuses', 'resources', 'allocatedResources'] as const

function hostPortsOf({ spec }: Pod): HostPort[] {
  const sidecars = (spec.initContainers ?? []).filter(({ restartPolicy }) => restartPolicy === 'Always')
  return [...spec.containers, ...sidecars].flatMap(({ ports = [] }) =>
    ports.flatMap(({ hostPort = 0, hostIP = '', protocol = 'TCP' }) =>
      hostPort > 0 ? [{ protocol, ip: hostIP === '' ? '0.0.0.0' : hostIP, port: hostPort }] : [],
    ),
  )
}
