/** Types of a pod on this node and its containers, as the kubelet API, metrics and eviction read them. */
import type { Pod } from '#apis/core/v1.ts'

import type { ContainerRecord } from './container-runs.ts'

/** A container in the runtime. */
export interface Instance {
  /** The ID without the prefix `containerd://`. */
  readonly containerId: string
  /** The log file; it may have been rotated. */
  readonly logPath: string
}

export interface ContainerOfPod {
  readonly record: Readonly<ContainerRecord>
  /** The newest container, running or ended; undefined before the first. */
  readonly current: Instance | undefined
  /** The container before, while the runtime keeps it. */
  readonly previous: Instance | undefined
}

export interface PodOfNode {
  /** With the kubelet's status, which may be newer than the API server's. */
  readonly pod: Pod
  /** The ready sandbox. */
  readonly sandboxId: string | undefined
  readonly containers: ReadonlyMap<string, ContainerOfPod>
}

/** Facts about the node that pods depend on. */
export interface PodFacts {
  readonly nodeName: string
  /** Node addresses, one per family, primary first. */
  readonly addresses: readonly string[]
  readonly cgroupDriver: 'cgroupfs' | 'systemd'
  /** The parent of the cgroup of all pods. Default: the root. */
  readonly cgroupRoot?: string
  /** `/var/lib/kubelet`; files of a pod are below `pods/<uid>`. */
  readonly rootDir: string
  /** `/var/log/pods`. */
  readonly podLogsDir: string
  /** `/var/log/containers`: links to logs for collectors. Default: none. */
  readonly containerLogsDir?: string
  readonly clusterDns: readonly string[]
  /** `cluster.local`, or '' for none. */
  readonly clusterDomain: string
  /** The node's resolv.conf; '' for none. */
  readonly resolvConf: string
  readonly maxPods: number
  readonly memoryBytes: number
  /** Forbid swap to containers without a memory limit too. */
  readonly forbidsSwap: boolean
  /** Use the RuntimeDefault seccomp profile when a container specifies none. */
  readonly seccompDefault?: boolean
  /** Maximum number of processes per pod. Default: no limit. */
  readonly pidsLimit?: number
  /** CFS period; 0: CPU limits are not enforced. Default: 100 ms. */
  readonly cfsPeriodUs?: number
  /** An OOM kill ends all processes of a container. Default: one process. */
  readonly killsContainersWhole?: boolean
  /** Number of user IDs per pod with a user namespace. Default: 65536. */
  readonly idsPerPod?: number
  /** Maximum restart back-off. Default: five minutes. */
  readonly maxRestartMs?: number
}
