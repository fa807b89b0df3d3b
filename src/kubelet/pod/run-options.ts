/** Collects the container settings that devices, claims, CPUs and memory require. */
import type { Device, Mount } from '#apis/wire/cri.ts'
import type { Input } from '#lib/protobuf/message.ts'

export interface RunContainerOptions {
  readonly envs: ReadonlyMap<string, string>
  readonly mounts: readonly Input<Mount>[]
  readonly devices: readonly Input<Device>[]
  readonly annotations: ReadonlyMap<string, string>
  /** CDI device names. */
  readonly cdiDevices: readonly string[]
  /** Its cpuset, such as `0-3,8`; '' for the shared pool. */
  readonly cpus: string
  /** The cpuset is exclusive, so that no CPU quota applies. */
  readonly hasExclusiveCpus: boolean
  /** Its memory nodes, such as `0-1`; '' for all. */
  readonly memoryNodes: string
}

export const NO_RUN_OPTIONS: RunContainerOptions = {
  envs: new Map(),
  mounts: [],
  devices: [],
  annotations: new Map(),
  cdiDevices: [],
  cpus: '',
  hasExclusiveCpus: false,
  memoryNodes: '',
}

/** Merges settings of several managers. For a single value, the last non-empty one wins. Pure. */
export function mergeRunOptions(options: readonly RunContainerOptions[]): RunContainerOptions {
  const byPath = <T extends { readonly containerPath?: string | undefined }>(all: readonly T[]): T[] => [
    ...new Map(all.map((each) => [each.containerPath, each])).values(),
  ]
  return {
    envs: new Map(options.flatMap(({ envs }) => [...envs])),
    mounts: byPath(options.flatMap(({ mounts }) => mounts)),
    devices: byPath(options.flatMap(({ devices }) => devices)),
    annotations: new Map(options.flatMap(({ annotations }) => [...annotations])),
    cdiDevices: [...new Set(options.flatMap(({ cdiDevices }) => cdiDevices))],
    cpus: options.findLast(({ cpus }) => cpus !== '')?.cpus ?? '',
    hasExclusiveCpus: options.some(({ hasExclusiveCpus }) => hasExclusiveCpus),
    memoryNodes: options.findLast(({ memoryNodes }) => memoryNodes !== '')?.memoryNodes ?? '',
  }
}
