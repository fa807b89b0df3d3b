/** Creates and lists the Members and Projects of a cluster. The Cluster owns them, so they are deleted with it. */
import type { KubeObject } from '#meta/object.ts'

import { type Member, Members, type Project, Projects } from '../kinds/access.ts'
import type { Cluster } from '../kinds/cluster.ts'
import { GROUP } from '../kinds/definition.ts'
import type { ManagementObjects } from '../objects.ts'

/** Without a project in `spec`: a member of the cluster. */
export function createMember(objects: ManagementObjects, cluster: Cluster, spec: Member['spec']): Promise<Member> {
  const ownerReferences = [ownerOf('Cluster', cluster)]
  const where = spec.project === undefined ? { cluster: cluster.metadata.name ?? '' } : {}
  return objects.create(Members, { metadata: { generateName: 'm-', ownerReferences }, spec: { ...spec, ...where } })
}

export function membersOfCluster(objects: ManagementObjects, cluster: string): readonly Member[] {
  return objects.list(Members).filter(({ spec }) => {
    if (spec.cluster !== undefined) return spec.cluster === cluster
    return spec.project !== undefined && objects.get(Projects, spec.project)?.spec.cluster === cluster
  })
}

export function projectsOf(objects: Pick<ManagementObjects, 'list'>, cluster: string): readonly Project[] {
  return objects.list(Projects).filter(({ spec }) => spec.cluster === cluster)
}

export function ownerOf(
  kind: string,
  { metadata }: KubeObject,
): { apiVersion: string; kind: string; name: string; uid: string } {
  return { apiVersion: `${GROUP}/v1`, kind, name: metadata.name ?? '', uid: metadata.uid ?? '' }
}
