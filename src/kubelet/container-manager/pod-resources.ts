/** Serves the pod resources API, which lists the devices, CPUs and memory of pods for monitoring agents. */
import { mkdir, rm } from 'node:fs/promises'
import { dirname } from 'node:path'

import type { Container, Pod } from '#apis/core/v1.ts'
import type { Device } from '#apis/wire/device-plugin.ts'
import {
  type ContainerDevices,
  type ContainerMemory,
  type ContainerResources,
  type DynamicResource,
  type PodResources,
  PodResourcesLister,
} from '#apis/wire/pod-resources.ts'
import type { Clock } from '#lib/clock.ts'
import { createGrpcServer, handleUnary } from '#lib/grpc/server.ts'
import { GrpcError } from '#lib/grpc/status.ts'
import type { Input } from '#lib/protobuf/message.ts'

import type { DeviceManager } from '../devices/device-manager.ts'
import type { ClaimManager } from '../dra/claim-manager.ts'
import type { ClaimState } from '../dra/claim-state.ts'
import { claimNamesOf } from '../dra/pod-claims.ts'
import type { CpuManager } from '../topology/cpu-manager.ts'
import type { MemoryManager } from '../topology/memory-manager.ts'
import type { Block } from '../topology/memory-table.ts'

export interface PodResourcesOptions {
  /** `pod-resources/kubelet.sock`. */
  readonly path: string
  readonly clock: Clock
  readonly devices: DeviceManager
  readonly claims: ClaimManager
  readonly cpus: CpuManager
  readonly memory: MemoryManager
  /** Pods that have not ended. */
  readonly pods: () => Iterable<Pod>
  readonly signal: AbortSignal
}

export async function servePodResources(options: PodResourcesOptions): Promise<void> {
  const { path, clock, devices, cpus, memory, pods, signal } = options
  const handlers = [
    handleUnary(PodResourcesLister.list, () => ({
      podResources: Array.from(pods(), (pod) => resourcesOf(pod, options)),
    })),
    handleUnary(PodResourcesLister.getAllocatableResources, () => ({
      devices: [...devices.all].flatMap(([resource, all]) => [...all.values()].map((one) => deviceOf(resource, one))),
      cpuIds: [...cpus.allocatable],
      memory: memory.allocatable.map(memoryOf),
    })),
    handleUnary(PodResourcesLister.get, ({ podName, podNamespace }) => {
      const found = Array.from(pods()).find(
        ({ metadata }) => metadata.name === podName && metadata.namespace === podNamespace,
      )
      if (found === undefined) throw new GrpcError('unknown', `pod ${podName} in namespace ${podNamespace} not found`)
      return { podResources: resourcesOf(found, options) }
    }),
  ]
  await mkdir(dirname(path), { recursive: true, mode: 0o750 })
  await rm(path, { force: true })
  const server = createGrpcServer({ handlers, clock })
  await server.listen({ path })
  signal.addEventListener('abort', () => void server.stop(0))
}

type ResourceManagers = Pick<PodResourcesOptions, 'devices' | 'claims' | 'cpus' | 'memory'>

/** Only sidecars of the init containers are included. */
function resourcesOf(pod: Pod, managers: ResourceManagers): Input<PodResources> {
  const { name = '', namespace = '' } = pod.metadata
  const { initContainers = [], containers } = pod.spec
  const sidecars = initContainers.filter(({ restartPolicy }) => restartPolicy === 'Always')
  return { name, namespace, containers: [...sidecars, ...containers].map((each) => ofContainer(pod, each, managers)) }
}

function ofContainer(pod: Pod, container: Container, managers: ResourceManagers): Input<ContainerResources> {
  const { devices, claims, cpus, memory } = managers
  const { uid = '' } = pod.metadata
  const allocated = [...devices.allocationsOf(uid, container.name)]
  const dynamicResources = dynamicResourcesOf(pod, container, claims.claimsOf(uid))
  return {
    name: container.name,
    cpuIds: [...(cpus.exclusiveCpusOf(uid, container.name) ?? [])],
    memory: memory.blocksOf(uid, container.name).map(memoryOf),
    devices: allocated.flatMap(([resource, { ids }]) =>
      ids.map((id) => deviceOf(resource, devices.all.get(resource)?.get(id) ?? { id })),
    ),
    dynamicResources,
  }
}

const memoryOf = ({ type: memoryType, size, numaAffinity }: Block): Input<ContainerMemory> => ({
  memoryType,
  size,
  topology: { nodes: numaAffinity.map((id) => ({ id })) },
})

const deviceOf = (
  resourceName: string,
  { id, topology }: Pick<Device, 'id'> & Partial<Device>,
): Input<ContainerDevices> => ({ resourceName, deviceIds: [id], topology })

function dynamicResourcesOf(
  pod: Pod,
  { resources }: Container,
  claims: readonly ClaimState[],
): Input<DynamicResource>[] {
  const used = resources?.claims ?? []
  if (used.length === 0) return []
  const names = claimNamesOf(pod)
  const wanted = new Set(used.map(({ name }) => names.get(name)))
  return claims
    .filter(({ ClaimName }) => wanted.has(ClaimName))
    .map(({ ClaimName: claimName, Namespace: claimNamespace, DriverState }) => ({
      claimName,
      claimNamespace,
      claimResources: Object.entries(DriverState).flatMap(([driverName, { Devices }]) =>
        (Devices ?? []).map(({ PoolName: poolName, DeviceName: deviceName, CDIDeviceIDs, ShareID }) => ({
          driverName,
          poolName,
          deviceName,
          cdiDevices: (CDIDeviceIDs ?? []).map((name) => ({ name })),
          ...(ShareID !== null && { shareId: ShareID }),
        })),
      ),
    }))
}
