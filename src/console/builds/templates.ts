/** Cluster templates: cluster files that clusters follow, with the parts that may differ. */
import type { KubeObject } from '#meta/object.ts'

export const TEMPLATES_PATH = '/v3/cluster-templates'

export interface ClusterTemplate extends KubeObject {
  readonly spec: {
    readonly displayName: string
    readonly description?: string
    readonly config: Readonly<Record<string, unknown>>
    readonly editable: readonly string[]
    /** The name of the user. */
    readonly createdBy?: string
  }
}

/** The paths in lines, or separated by commas. */
export function pathsIn(text: string): readonly string[] {
  return text.split(/[\s,]+/).filter(Boolean)
}
