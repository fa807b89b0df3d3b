/** What others may know of the pods of a node: its HTTP API, its metrics, its eviction. */
import type { Pod } from '#apis/core/v1.ts'

import type { ContainerRecord } from '../container-runs.ts'

/** A container of the runtime. */
export interface Instance {
  /** As the runtime names it, without `containerd://`. */
  readonly containerId: string
  /** Where its output goes; the file may have been rotated away. */
  readonly logPath: string
}

export interface ContainerOfPod {
  readonly record: Readonly<ContainerRecord>
  /** The newest, running or ended; undefined while none was made. */
  readonly current: Instance | undefined
  /** The one before, as long as the runtime keeps it. */
  readonly previous: Instance | undefined
}

export interface PodOfNode {
  /** With the status that its kubelet knows, which may be ahead of what the API server has. */
  readonly pod: Pod
  /** The one that is ready. */
  readonly sandboxId: string | undefined
  readonly containers: ReadonlyMap<string, ContainerOfPod>
}

/** What pods need to know of the machine they are on. */
export interface PodFacts {
  readonly nodeName: string
  /** Of the node, one per family, the first first. */
  readonly addresses: readonly string[]
  readonly cgroupDriver: 'cgroupfs' | 'systemd'
  /** Below which all pods are. Default: the root. */
  readonly cgroupRoot?: string
  /** `/var/lib/kubelet`: what is kept of pods is below `pods/<uid>`. */
  readonly rootDir: string
  /** `/var/log/pods`. */
  readonly podLogsDir: string
  /** `/var/log/containers`: links to logs, for whoever collects them. Default: none. */
  readonly containerLogsDir?: string
  readonly clusterDns: readonly string[]
  /** `cluster.local`, or '' for none. */
  readonly clusterDomain: string
  /** The file that says how the node finds names; '' for none. */
  readonly resolvConf: string
  readonly maxPods: number
  readonly memoryBytes: number
  /** Containers are kept from swapping though they have no limit of memory; else only those that have one. */
  readonly forbidsSwap: boolean
  /** Containers that say nothing of it are kept from unusual calls of the kernel. */
  readonly seccompDefault?: boolean
  /** Processes of a pod, all together. Default: no limit. */
  readonly pidsLimit?: number
  /** In which a limit of processors is used up; 0: such limits are not enforced. Default: a tenth of a second. */
  readonly cfsPeriodUs?: number
  /** A container out of memory ends with all its processes. Default: with one of them. */
  readonly killsContainersWhole?: boolean
  /** Users of a pod that has some of its own. Default: 65536. */
  readonly idsPerPod?: number
  /** How long a container that crashes again and again waits at most. Default: five minutes. */
  readonly maxRestartMs?: number
}
