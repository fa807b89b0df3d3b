/** The keeper of volumes of a kubelet, put together. */
import type { Node, Pod } from '#apis/core/v1.ts'
import type { ApiClient } from '#client/api-client.ts'
import type { Clock } from '#lib/clock.ts'
import type { Logger } from '#lib/log.ts'
import type { Random } from '#lib/random.ts'

import type { Note } from '../kubelet-notes.ts'
import { createKubeletMeters, type KubeletMeters } from '../metrics/kubelet-families.ts'
import type { PodObjects } from '../object-cache.ts'
import type { PodFacts } from '../pods/pod-of-node.ts'
import type { CsiVolumes } from './csi/csi-volumes.ts'
import { DiskVolumes } from './disk-volumes.ts'
import { createMounter, type Mounter } from './mounter.ts'
import { PodCertificates } from './pod-certificates.ts'
import { PodTokens } from './pod-tokens.ts'
import type { VolumeKeeper } from './volume-keeper.ts'
import { createVolumeSources } from './volume-sources.ts'

export interface VolumesOnDiskOptions {
  readonly client: ApiClient
  readonly objects: PodObjects
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  readonly node: () => Node | undefined
  readonly facts: Pick<PodFacts, 'rootDir' | 'memoryBytes'>
  /** Says to people what happened about a pod. */
  readonly note: (pod: Pod, note: Note) => void
  /** Without it, no driver brings anything. */
  readonly csi?: CsiVolumes
  /** Default: that of the machine. */
  readonly mounter?: Mounter
  /** Default: nobody counts. */
  readonly meters?: KubeletMeters
}

export function volumesOnDisk(options: VolumesOnDiskOptions): VolumeKeeper {
  const { client, objects, clock, random, log, node, note, facts, mounter = createMounter(), csi } = options
  const onError = (error: unknown): void => log.error(error, "Couldn't update token")
  const tokens = new PodTokens({ client, random, onError })
  const onFailedRefresh = (error: unknown): void => log.error(error, "Couldn't refresh a pod certificate")
  const certificates = new PodCertificates({ client, random, node, note, onError: onFailedRefresh })
  const { memoryBytes } = facts
  const sources = createVolumeSources({ client, objects, tokens, certificates, node, memoryBytes })
  const onLeave = (uid: string): void => {
    tokens.forget(uid)
    certificates.forget(uid)
    objects.forget(uid)
  }
  const withCsi = csi === undefined ? {} : { csi }
  const { meters = createKubeletMeters() } = options
  meters.collect('kubelet_podcertificate_states', (emit) => {
    for (const { signerName, state, count } of certificates.counts()) emit(count, signerName, state)
  })
  const tools = { clock, random, log, mounter, meters }
  return new DiskVolumes({ rootDir: facts.rootDir, ...tools, sources, onLeave, ...withCsi })
}
