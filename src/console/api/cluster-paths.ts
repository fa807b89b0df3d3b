/** Paths of the clusters of a management server. */

/** Of the list of all clusters that the user may see. It can be watched. */
export const CLUSTERS_PATH = '/v3/clusters'

export function clusterPath(name: string): string {
  return `${CLUSTERS_PATH}/${encodeURIComponent(name)}`
}
