/** Ranks pods for eviction, and formats the eviction message. Pure. */
import type { Pod } from '#apis/core/v1.ts'
import { parseQuantity, quantityOf, quantityText, quantityValue } from '#meta/quantity.ts'
import { podLimits, podRequests } from '#model/pod-resources.ts'

import type { ContainerUse, PodUse } from '../machine/node-use.ts'
import { type Observations, type Signal, SIGNALS, type Threshold, thresholdText } from './thresholds.ts'

const bytesText = (bytes: number): string => quantityText(quantityOf(bytes, 'BinarySI'))

function requestOf({ spec }: Pod, name: string): number {
  const request = podRequests({ spec, status: {} }).get(name)
  return request === undefined ? 0 : quantityValue(request)
}

const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0)

const NO_FILES = { bytes: 0, inodes: 0 }

/**
 * The usage that the signal is about. With a separate image file system, imagefs counts layers and nodefs everything
 * else.
 */
function usageOf(
  { memoryBytes, processes, containers, volumes, files = NO_FILES }: PodUse,
  signal: Signal,
  hasImageDisk: boolean,
): number {
  if (signal === 'memory.available') return memoryBytes
  if (signal === 'pid.available') return processes
  const isInodes = signal.endsWith('inodesFree')
  const layers = sum(containers.map((one) => (isInodes ? one.rootfsInodes : one.rootfsBytes)))
  const rest = sum([
    ...containers.map((one) => (isInodes ? one.logInodes : one.logBytes)),
    ...[...volumes, files].map(({ bytes, inodes }) => (isInodes ? inodes : bytes)),
  ])
  if (!hasImageDisk) return layers + rest
  return signal.startsWith('imagefs') ? layers : rest
}

/** Eviction order: pods above their requests first, then lower priority, then larger excess. */
export function rankPods(pods: readonly PodUse[], signal: Signal, hasImageDisk: boolean): PodUse[] {
  const { resource } = SIGNALS[signal]
  const isByRequest = resource !== 'pids'
  const ranked = pods.map((use) => {
    const used = usageOf(use, signal, hasImageDisk)
    const requested = isByRequest ? requestOf(use.pod, resource) : 0
    return {
      use,
      over: used - requested,
      isOver: isByRequest && used > requested,
      priority: use.pod.spec.priority ?? 0,
    }
  })
  ranked.sort(
    (a, b) =>
      Number(a.use.isKnown) - Number(b.use.isKnown) ||
      Number(b.isOver) - Number(a.isOver) ||
      a.priority - b.priority ||
      b.over - a.over,
  )
  return ranked.map(({ use }) => use)
}

export interface EvictionText {
  readonly message: string
  readonly annotations: Readonly<Record<string, string>>
}

export function evictionText(
  { pod, containers, memoryBytes }: PodUse,
  threshold: Threshold,
  seen: Observations,
): EvictionText {
  const { resource } = SIGNALS[threshold.signal]
  const { initContainers = [], containers: mains, resources } = pod.spec
  const ofPod = resource === 'memory' ? resources?.requests?.['memory'] : undefined
  const name = pod.metadata.name ?? ''
  const requests = new Map(
    [...mains, ...initContainers].map((one) => [one.name, one.resources.requests?.[resource] ?? '0']),
  )
  const greedy = containers.flatMap((use) => {
    const request = requests.get(use.name)
    const used = resource === 'memory' ? use.memoryBytes : resource === 'ephemeral-storage' ? diskOf(use) : 0
    if (request === undefined || used <= quantityValue(parseQuantity(request))) return []
    return { name: use.name, used: bytesText(used), request: quantityText(parseQuantity(request)) }
  })
  const complain = (noun: string, who: string, used: string, request: string): string =>
    `${noun} ${who} was using ${used}, request is ${request}, has larger consumption of ${resource}. `
  const message = [
    `The node was low on resource: ${resource}. `,
    thresholdText(threshold, seen),
    ofPod === undefined ? '' : complain('Pod', name, bytesText(memoryBytes), ofPod),
    ...greedy.map(({ name: who, used, request }) => complain('Container', who, used, request)),
  ].join('')
  return {
    message,
    annotations: {
      ...(ofPod !== undefined && { offending_pod: name, offending_pod_usage: bytesText(memoryBytes) }),
      offending_containers: greedy.map(({ name: who }) => who).join(','),
      offending_containers_usage: greedy.map(({ used }) => used).join(','),
      starved_resource: resource,
    },
  }
}

const diskOf = ({ rootfsBytes, logBytes }: ContainerUse): number => rootfsBytes + logBytes

export interface Excess {
  /** The metric label. */
  readonly signal: string
  readonly message: string
}

/** The local storage limit that a pod exceeds; undefined without one. */
export function excessOf(use: PodUse, hasImageDisk: boolean): Excess | undefined {
  if (!use.isKnown) return undefined
  const [ofVolume, ofPod] = [volumeExcess(use), podExcess(use)]
  if (ofVolume !== undefined) return { signal: 'emptydirfs.limit', message: ofVolume }
  if (ofPod !== undefined) return { signal: 'ephemeralpodfs.limit', message: ofPod }
  const ofContainer = containerExcess(use, hasImageDisk)
  return ofContainer === undefined ? undefined : { signal: 'ephemeralcontainerfs.limit', message: ofContainer }
}

function volumeExcess({ pod, volumes }: PodUse): string | undefined {
  for (const { name, emptyDir } of pod.spec.volumes ?? []) {
    const limit = emptyDir?.sizeLimit
    const used = volumes.find((volume) => volume.name === name)?.bytes
    if (limit !== undefined && used !== undefined && isBeyond(used, limit)) {
      return `Usage of EmptyDir volume "${name}" exceeds the limit "${limit}". `
    }
  }
  return undefined
}

function podExcess({ pod, containers, volumes, files = NO_FILES }: PodUse): string | undefined {
  const limit = podLimits({ spec: pod.spec, status: {} }).get('ephemeral-storage')
  const used = sum([...containers.map(diskOf), ...volumes.map(({ bytes }) => bytes), files.bytes])
  if (limit === undefined || used <= quantityValue(limit)) return undefined
  return `Pod ephemeral local storage usage exceeds the total limit of containers ${quantityText(limit)}. `
}

function containerExcess({ pod, containers }: PodUse, hasImageDisk: boolean): string | undefined {
  for (const { name, logBytes, rootfsBytes } of containers) {
    const container = pod.spec.containers.find((one) => one.name === name)
    const limit = container?.resources.limits?.['ephemeral-storage']
    if (limit !== undefined && isBeyond(logBytes + (hasImageDisk ? 0 : rootfsBytes), limit)) {
      return `Container ${name} exceeded its local ephemeral storage limit "${limit}". `
    }
  }
  return undefined
}

/** A limit of zero means no limit. */
function isBeyond(used: number, limit: string): boolean {
  const bytes = quantityValue(parseQuantity(limit))
  return bytes > 0 && used > bytes
}
