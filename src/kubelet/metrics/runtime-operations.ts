/** Counts runtime calls, their durations and errors, with upstream's operation names. */
import { METHODS, type Runtime } from '#cri/runtime.ts'
import type { Clock } from '#lib/clock.ts'
import type { CallOptions } from '#lib/grpc/client.ts'

import type { KubeletMeters } from './kubelet-families.ts'

const OPERATIONS: Readonly<Partial<Record<keyof Runtime, string>>> = {
  attach: 'attach',
  checkpointContainer: 'checkpoint_container',
  containerStats: 'container_stats',
  containerStatus: 'container_status',
  createContainer: 'create_container',
  exec: 'exec',
  execSync: 'exec_sync',
  imageStatus: 'image_status',
  listContainers: 'list_containers',
  listContainerStats: 'list_container_stats',
  listImages: 'list_images',
  listPodSandbox: 'list_podsandbox',
  listPodSandboxStats: 'list_podsandbox_stats',
  podSandboxStats: 'podsandbox_stats',
  podSandboxStatus: 'podsandbox_status',
  portForward: 'port_forward',
  pullImage: 'pull_image',
  removeContainer: 'remove_container',
  removeImage: 'remove_image',
  removePodSandbox: 'remove_podsandbox',
  reopenContainerLog: 'reopen_container_log',
  runPodSandbox: 'run_podsandbox',
  startContainer: 'start_container',
  status: 'status',
  stopContainer: 'stop_container',
  stopPodSandbox: 'stop_podsandbox',
  updateContainerResources: 'update_container',
  version: 'version',
}

type CountedCall = (request: object, options?: CallOptions) => Promise<unknown>

export function countOperations(runtime: Runtime, meters: KubeletMeters, clock: Clock): Runtime {
  const total = meters.family('kubelet_runtime_operations_total')
  const errors = meters.family('kubelet_runtime_operations_errors_total')
  const durations = meters.family('kubelet_runtime_operations_duration_seconds')
  const calls = Object.keys(METHODS).map((name) => {
    const call = runtime[name as keyof Runtime] as unknown as CountedCall
    const operation = OPERATIONS[name as keyof Runtime]
    if (operation === undefined) return [name, call]
    const counted: CountedCall = async (request, options) => {
      const startedMs = clock.elapsed()
      total.labels(operation).inc()
      try {
        return await call(request, options)
      } catch (error) {
        errors.labels(operation).inc()
        throw error
      } finally {
        durations.labels(operation).observe((clock.elapsed() - startedMs) / 1000)
      }
    }
    return [name, counted]
  })
  return Object.fromEntries(calls) as Runtime
}
