/** The type of a requested CSI volume, with the driver that serves it. */
import type { Pod } from '#apis/core/v1.ts'
import type { CSIDriver } from '#apis/storage/v1.ts'

import type { NodeService } from './csi-node-service.ts'
import type { CsiSource } from './csi-source.ts'

export interface CsiRequest {
  readonly pod: Pod
  /** The name of the PersistentVolume, or of the volume in the pod. */
  readonly name: string
  readonly source: CsiSource
}

/** A CSI driver and its capabilities. */
export interface ServingDriver {
  readonly service: NodeService
  readonly capabilities: ReadonlySet<number>
  readonly object: CSIDriver | undefined
  /** From the status of the VolumeAttachment. */
  readonly publishContext: ReadonlyMap<string, string>
}
