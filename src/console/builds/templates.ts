/** Cluster templates: cluster files that clusters follow, with the parts that may differ. */
import type { KubeObject } from '#meta/object.ts'

export interface ClusterTemplate extends KubeObject {
  readonly spec: {
    readonly displayName: string
    readonly description?: string
    readonly config: Readonly<Record<string, unknown>>
    readonly editable: readonly string[]
    readonly createdBy?: string
  }
}
