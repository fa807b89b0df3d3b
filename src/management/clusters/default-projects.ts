/**
 * Controller that creates the projects Default and System of a cluster once, when its agent has connected for the
 * first time.
 */
import { isAlreadyExists } from '#meta/status.ts'
import { type Controller, itself, rule } from '#reconcile/controller.ts'

import { ownerOf } from '../access/members.ts'
import { type Project, Projects } from '../kinds/access.ts'
import { Clusters, CONNECTED, LOCAL_CLUSTER, PROJECTS_CREATED } from '../kinds/cluster.ts'
import { GROUP } from '../kinds/definition.ts'
import { AGENT_NAMESPACE } from './agent-manifest.ts'
import { type Finding, type ManagementSettings, writeStatus } from './cluster-status.ts'

/** By displayName. Namespaces that belong to another project already stay there. */
const DEFAULT_PROJECTS: Readonly<Record<string, readonly string[]>> = {
  Default: ['default'],
  System: ['kube-system', 'kube-public', 'kube-node-lease', AGENT_NAMESPACE],
}

const CREATED: Finding = {
  type: PROJECTS_CREATED,
  status: 'True',
  reason: 'Created',
  message: 'The cluster had its first projects.',
}

export const defaultProjects: Controller<ManagementSettings> = {
  name: 'default-projects-controller',
  watches: [itself(Clusters)],
  rules: [
    rule(GROUP, 'clusters clusters/status', 'get list watch update'),
    rule(GROUP, 'projects', 'get list watch create'),
  ],
  async reconcile(key, context) {
    const { cache, client, signal } = context
    const cluster = cache.get(Clusters, key)
    if (cluster === undefined || key === LOCAL_CLUSTER || cluster.metadata.deletionTimestamp !== undefined) return
    const has = (wanted: string, status: string): boolean =>
      cluster.status?.conditions?.some((one) => one.type === wanted && one.status === status) ?? false
    if (!has(CONNECTED, 'True') || has(PROJECTS_CREATED, 'True')) return
    const { items } = await client.list(Projects, { signal })
    const taken = new Set(items.flatMap(({ spec }) => (spec.cluster === key ? (spec.namespaces ?? []) : [])))
    for (const [displayName, all] of Object.entries(DEFAULT_PROJECTS)) {
      const namespaces = all.filter((namespace) => !taken.has(namespace))
      const spec: Project['spec'] = { cluster: key, displayName, namespaces }
      // The name is fixed: a start after a crash between the two creates none twice.
      const metadata = { name: `p-${key}-${displayName.toLowerCase()}`, ownerReferences: [ownerOf('Cluster', cluster)] }
      await client.create(Projects, { metadata, spec }, { signal }).catch((error: unknown) => {
        if (!isAlreadyExists(error)) throw error
      })
    }
    await writeStatus(context, key, { conditions: [CREATED] })
  },
}
