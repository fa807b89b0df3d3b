/** Starts and stops clusters of `hyperkube up` on the machine of the server. */
import type { UpSettings } from '../kinds/cluster.ts'

export interface UpPrograms {
  /** The cluster of this name; undefined if it does not exist. */
  find(name: string): Promise<FoundCluster | undefined>
  /**
   * Creates or resumes a cluster. Resolves when its API server answers. A cluster that does not exist begins as a copy of
   * `forkOf` if there is one. Rejects with the last lines of its log.
   */
  start(name: string, settings: UpSettings): Promise<void>
  /** Resolves when the processes have ended. The state stays. */
  stop(name: string): Promise<void>
  /** Stops the cluster and deletes its state. Does nothing if it does not exist. */
  remove(name: string): Promise<void>
}

export interface FoundCluster {
  /** Undefined: the cluster is stopped. */
  readonly endpoint: UpEndpoint | undefined
}

/** How the server reaches the API server of a running cluster, with the certificate of its front proxy. */
export interface UpEndpoint {
  /** `https://127.0.0.1:6443`. */
  readonly url: string
  /** PEM. */
  readonly ca: string
  readonly certificate: string
  readonly key: string
}
