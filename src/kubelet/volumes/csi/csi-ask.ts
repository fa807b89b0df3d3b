/** One volume that is wanted of a driver, and the driver that is asked for it. */
import type { Pod } from '#apis/core/v1.ts'
import type { CSIDriver } from '#apis/storage/v1.ts'

import type { NodeService } from './csi-node-service.ts'
import type { CsiSource } from './csi-source.ts'

export interface CsiAsk {
  readonly pod: Pod
  /** Of the PersistentVolume, or of the volume in the pod. */
  readonly name: string
  readonly source: CsiSource
}

/** A driver that is asked, and what it can do. */
export interface Asked {
  readonly service: NodeService
  readonly capabilities: ReadonlySet<number>
  readonly object: CSIDriver | undefined
  /** What whoever attached the volume left for the driver. */
  readonly publishContext: ReadonlyMap<string, string>
}
