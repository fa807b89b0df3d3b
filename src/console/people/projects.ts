/** The requests that change projects and move namespaces between them. */
import { clusterPath } from '../api/cluster-paths.ts'
import { pathOfProjects } from '../api/projects.ts'
import { send } from '../api/request.ts'

export interface ProjectFields {
  readonly displayName: string
  readonly description?: string
}

export async function createProject(cluster: string, fields: ProjectFields): Promise<void> {
  await send(pathOf(cluster), { method: 'POST', body: fields })
}

export async function changeProject(cluster: string, project: string, fields: ProjectFields): Promise<void> {
  await send(pathOf(cluster, project), { method: 'PATCH', body: fields })
}

/** Its namespaces stay. The rights of its members end. */
export async function deleteProject(cluster: string, project: string): Promise<void> {
  await send(pathOf(cluster, project), { method: 'DELETE' })
}

export async function createNamespace(cluster: string, project: string, name: string): Promise<void> {
  await send(`${pathOf(cluster, project)}/namespaces`, { method: 'POST', body: { name } })
}

/** Null: out of its project. */
export async function moveNamespace(cluster: string, namespace: string, project: string | null): Promise<void> {
  const path = `${clusterPath(cluster)}/namespaces/${encodeURIComponent(namespace)}/move`
  await send(path, { method: 'POST', body: { project } })
}

function pathOf(cluster: string, project?: string): string {
  const path = pathOfProjects(cluster)
  return project === undefined ? path : `${path}/${encodeURIComponent(project)}`
}
