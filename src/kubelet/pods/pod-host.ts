/** What the workers of all pods of a node have in common. */
import type { Node, Pod, Service } from '#apis/core/v1.ts'
import type { ApiClient } from '#client/api-client.ts'
import type { EventRecorder } from '#client/event-recorder.ts'
import type { Clock } from '#lib/clock.ts'
import type { Logger } from '#lib/log.ts'
import type { Random } from '#lib/random.ts'

import type { NodeTraits, Rejection } from '../admission-rules.ts'
import type { PodCgroups } from '../cgroups/pod-cgroups.ts'
import type { CredentialSource } from '../credentials/credential-provider.ts'
import type { PullRecords } from '../credentials/pull-records.ts'
import type { Runtime } from '../cri/runtime.ts'
import type { Disk, ImagePolicy } from '../gc/image-garbage.ts'
import type { GarbagePolicy } from '../gc/runtime-garbage.ts'
import type { PodGrants } from '../grants/container-grant.ts'
import type { Note } from '../kubelet-notes.ts'
import type { KubeletMeters } from '../metrics/kubelet-families.ts'
import type { ProbeCounts } from '../metrics/probe-counts.ts'
import type { PodObjects } from '../object-cache.ts'
import type { AskProbe } from '../probes/probe-action.ts'
import type { VolumeKeeper } from '../volumes/volume-keeper.ts'
import type { Allocations } from './allocations.ts'
import type { ImagePuller, PullLimits } from './image-puller.ts'
import type { LogFiles } from './log-links.ts'
import type { PodFiles } from './pod-files.ts'
import type { PodFacts } from './pod-of-node.ts'
import type { RuntimePods } from './runtime-pods.ts'
import type { StatusDoor } from './status-writer.ts'

export interface PodWorkersOptions {
  readonly runtime: Runtime
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  /** As `system:node:<name>`. */
  readonly client: ApiClient
  readonly recorder: EventRecorder
  /** As the API server has it; undefined until it was read. */
  readonly node: () => Node | undefined
  readonly facts: PodFacts
  /** All of them: containers are told where those of their namespace are. */
  readonly services: () => readonly Service[]
  /** Without it, pods that have volumes wait. */
  readonly volumes?: VolumeKeeper
  /** Default: the runtime makes what it needs. */
  readonly cgroups?: PodCgroups
  /** What is set aside for pods. Default: nothing. */
  readonly grants?: PodGrants
  /** Default: forgotten with the process. */
  readonly allocations?: Allocations
  /** What pods refer to. Default: read anew each time. */
  readonly objects?: PodObjects
  /** Default: on the disk, below `facts.rootDir`. */
  readonly files?: PodFiles
  /** Default: over the network and the runtime. */
  readonly askProbe?: AskProbe
  /** Default: on the disk, in `facts.podLogsDir` and `facts.containerLogsDir`. */
  readonly logs?: LogFiles
  /** Default: as the kernel counts it. */
  readonly imageDisk?: () => Promise<Disk>
  /** How images are pulled. Default: as upstream's. */
  readonly pulls?: PullLimits
  /** How long the runtime has for an answer. Default: two minutes. */
  readonly callLimitMs?: number
  readonly garbage?: { readonly containers?: GarbagePolicy; readonly images?: ImagePolicy }
  /** Asked whenever a pod is to be taken. */
  readonly traits?: () => NodeTraits
  /** Told about the node. */
  readonly noteNode?: (said: Note) => void
  /** Who is told how a pod is, when that is not the API server. */
  readonly writerFor?: (pod: Pod) => StatusDoor | undefined
  /** Nothing is left of a pod. */
  readonly onGone?: (uid: string) => void
  /** Default: nobody counts. */
  readonly meters?: KubeletMeters
  readonly probes?: ProbeCounts
  /** Who is asked whom to be before registries, beside the secrets of pods. Default: nobody. */
  readonly providers?: readonly CredentialSource[]
  /** Who has pulled what. Default: whoever may run here may use what is here. */
  readonly records?: PullRecords
}

type Defaulted =
  | 'cgroups'
  | 'grants'
  | 'volumes'
  | 'allocations'
  | 'files'
  | 'askProbe'
  | 'logs'
  | 'imageDisk'
  | 'garbage'
  | 'traits'
  | 'noteNode'
  | 'meters'
  | 'probes'

export interface PodHost extends Omit<PodWorkersOptions, Defaulted | 'recorder'> {
  readonly cgroups: PodCgroups
  readonly grants: PodGrants
  readonly allocations: Allocations
  readonly volumes: VolumeKeeper
  readonly objects: PodObjects
  readonly files: PodFiles
  readonly askProbe: AskProbe
  readonly logs: LogFiles
  readonly puller: ImagePuller
  readonly meters: KubeletMeters
  readonly probes: ProbeCounts
  readonly held: RuntimePods
  /** `containerd`: stands before the ids of containers. */
  readonly runtimeName: () => string
  readonly signal: AbortSignal
  admit(pod: Pod, isThere: boolean): Rejection | undefined
  /** Others make room for one that is critical. Resolves when they have ended; false: nobody did. */
  preempt(pod: Pod): Promise<boolean>
  /** Undefined: it is granted what it asks for. */
  resize(pod: Pod): Rejection | undefined
  release(pod: Pod): void
  /** `fieldPath` for events about a container. */
  note(pod: Pod, said: Note, fieldPath?: string): void
  /** The pod has gone, and nothing of it is left. */
  gone(uid: string): void
}
