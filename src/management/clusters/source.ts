/** How clusters come to the server. A row for each `spec.source` that people can choose. */
import type { Cluster, ClusterSpec } from '../kinds/cluster.ts'
import type { PersonCall } from './requests.ts'

export interface ClusterSource {
  readonly name: Exclude<ClusterSpec['source'], 'local'>
  /**
   * Reads the fields of the request body that only this source has. Throws StatusError for invalid fields and for people
   * who may not create such clusters.
   */
  draft(call: PersonCall, fields: Readonly<Record<string, unknown>>): ClusterDraft | Promise<ClusterDraft>
  /** More fields of the response to the creation. */
  created?(cluster: Cluster, call: PersonCall): Promise<object>
  /** Runs before the Cluster is deleted. Resolves with the things that stay behind. */
  remove?(cluster: Cluster, call: PersonCall): Promise<readonly string[]>
  /** Instead of `remove`, for a removal that takes a while: a controller deletes the Cluster in the end. */
  beginRemoval?(cluster: Cluster, call: PersonCall): Promise<void>
}

export interface ClusterDraft {
  readonly spec: Partial<ClusterSpec>
  readonly finalizers?: readonly string[]
  readonly annotations?: Readonly<Record<string, string>>
  /** Default: a random one. */
  readonly name?: string
  /** More fields of the response. */
  readonly reply?: object
  /** Runs if the Cluster cannot be created. */
  readonly discard?: () => Promise<void>
}
