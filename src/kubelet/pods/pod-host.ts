/** Dependencies shared by all pod workers of a node. */
import type { Node, Service } from '#apis/core/v1.ts'
import type { ApiClient } from '#client/api-client.ts'
import type { EventRecorder } from '#client/events/event-recorder.ts'
import type { Runtime } from '#cri/runtime.ts'
import type { Clock } from '#lib/clock.ts'
import type { Logger } from '#lib/log/log.ts'
import type { Random } from '#lib/random.ts'

import type { PodCgroups } from '../cgroups/pod-cgroups.ts'
import type { ContainerManager } from '../container-manager/container-manager.ts'
import type { CredentialSource } from '../credentials/credential-provider.ts'
import type { PullRecords } from '../credentials/pull-records.ts'
import type { ImagePolicy } from '../gc/image-garbage.ts'
import type { GarbagePolicy } from '../gc/runtime-garbage.ts'
import type { Disk } from '../machine/disks.ts'
import type { KubeletMeters } from '../metrics/kubelet-families.ts'
import type { ProbeCounts } from '../metrics/probe-counts.ts'
import type { PodObjects } from '../object-cache.ts'
import type { NodeTraits } from '../pod/admission-rules.ts'
import type { PodFacts } from '../pod/pod-of-node.ts'
import type { RunProbe } from '../probes/probe-action.ts'
import type { LogFiles } from '../runtime/log-links.ts'
import type { Pleg } from '../runtime/pleg.ts'
import type { VolumeManager } from '../volumes/volume-manager.ts'
import type { Allocations } from './allocations.ts'
import type { ImagePuller, PullLimits } from './images/image-puller.ts'
import type { NodeAdmission } from './node-admission.ts'
import type { PodFiles } from './pod-files.ts'
import type { PodRegistry } from './pod-registry.ts'
import type { RecordNodeEvent, RecordPodEvent } from './record-events.ts'

/** Services that have a default. */
export interface PodServices {
  /** Default: pods with volumes do not start. */
  readonly volumes: VolumeManager
  /** Default: the runtime creates the cgroups. */
  readonly cgroups: PodCgroups
  /** Allocates exclusive resources. Default: none. */
  readonly containerManager: ContainerManager
  /** Default: in memory only. */
  readonly allocations: Allocations
  /** ConfigMaps and Secrets. Default: read each time. */
  readonly objects: PodObjects
  /** Default: on disk, below `facts.rootDir`. */
  readonly files: PodFiles
  /** Default: over the network and the runtime. */
  readonly runProbe: RunProbe
  /** Default: on disk, in `facts.podLogsDir` and `facts.containerLogsDir`. */
  readonly logs: LogFiles
  /** Default: a registry that is not served. */
  readonly meters: KubeletMeters
  readonly probes: ProbeCounts
}

interface NodeServices {
  readonly runtime: Runtime
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  /** As `system:node:<name>`. */
  readonly client: ApiClient
  /** From the API server; undefined until it was read. */
  readonly node: () => Node | undefined
  readonly facts: PodFacts
  /** All Services; containers get variables for those of their namespace. */
  readonly services: () => readonly Service[]
  /** Credential sources besides image pull secrets. Default: none. */
  readonly providers?: readonly CredentialSource[]
}

export interface PodWorkersOptions extends NodeServices, Partial<PodServices> {
  readonly recorder: EventRecorder
  /** Default: empty. */
  readonly registry?: PodRegistry
  /** Default: measured by the kernel. */
  readonly imageDisk?: () => Promise<Disk>
  /** Limits of image pulls. Default: upstream's. */
  readonly pulls?: PullLimits | undefined
  /** Timeout of runtime calls. Default: two minutes. */
  readonly runtimeTimeoutMs?: number | undefined
  readonly garbage?: { readonly containers?: GarbagePolicy; readonly images?: ImagePolicy } | undefined
  /** Read at each admission. */
  readonly traits?: () => NodeTraits
  /** Records an event about the node. */
  readonly recordNodeEvent?: RecordNodeEvent
  /** Records of image pulls. Default: access to present images is not verified. */
  readonly records?: PullRecords | undefined
}

export interface PodHost extends NodeServices, PodServices {
  readonly puller: ImagePuller
  readonly pleg: Pleg
  readonly registry: PodRegistry
  readonly admission: NodeAdmission
  readonly recordEvent: RecordPodEvent
  /** Aborted when the kubelet stops. */
  readonly signal: AbortSignal
}
