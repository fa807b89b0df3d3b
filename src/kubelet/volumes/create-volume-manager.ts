/** Creates the volume manager of a kubelet with its dependencies. */
import type { Node, Pod } from '#apis/core/v1.ts'
import type { ApiClient } from '#client/api-client.ts'
import type { Clock } from '#lib/clock.ts'
import type { Logger } from '#lib/log/log.ts'
import type { Random } from '#lib/random.ts'

import { createKubeletMeters, type KubeletMeters } from '../metrics/kubelet-families.ts'
import type { PodObjects } from '../object-cache.ts'
import type { EventSpec } from '../pod/events.ts'
import type { PodFacts } from '../pod/pod-of-node.ts'
import type { CsiVolumes } from './csi/csi-volumes.ts'
import { DiskVolumeManager } from './disk-volume-manager.ts'
import { createMounter, type Mounter } from './mounts/mounter.ts'
import { PodCertificates } from './pod-certificates.ts'
import { PodTokens } from './pod-tokens.ts'
import type { VolumeManager } from './volume-manager.ts'
import { createVolumeSources } from './volume-sources.ts'

export interface VolumeManagerOptions {
  readonly client: ApiClient
  readonly objects: PodObjects
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  readonly node: () => Node | undefined
  readonly facts: Pick<PodFacts, 'rootDir' | 'memoryBytes'>
  /** Records an event about a pod. */
  readonly recordEvent: (pod: Pod, event: EventSpec) => void
  /** Default: no CSI volumes. */
  readonly csi?: CsiVolumes | undefined
  /** Default: the machine's mounter. */
  readonly mounter?: Mounter
  /** Default: a registry that is not served. */
  readonly meters?: KubeletMeters
}

export function createVolumeManager(options: VolumeManagerOptions): VolumeManager {
  const { client, objects, clock, random, log, node, recordEvent, facts, mounter = createMounter(), csi } = options
  const onError = (error: unknown): void => log.error(error, "Couldn't update token")
  const tokens = new PodTokens({ client, random, onError })
  const onFailedRefresh = (error: unknown): void => log.error(error, 'Failed to refresh pod certificate')
  const certificates = new PodCertificates({ client, random, node, recordEvent, onError: onFailedRefresh })
  const { memoryBytes } = facts
  const sources = createVolumeSources({ client, objects, tokens, certificates, node, memoryBytes })
  const onUnmounted = (uid: string): void => {
    tokens.forget(uid)
    certificates.forget(uid)
    objects.forget(uid)
  }
  const { meters = createKubeletMeters() } = options
  meters.collect('kubelet_podcertificate_states', (emit) => {
    for (const { signerName, state, count } of certificates.counts()) emit(count, signerName, state)
  })
  const tools = { clock, random, log, mounter, meters }
  return new DiskVolumeManager({ rootDir: facts.rootDir, ...tools, sources, onUnmounted, csi })
}
