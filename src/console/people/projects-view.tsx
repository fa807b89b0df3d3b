/** The projects of a cluster with their namespaces. */
import type { VNode } from 'preact'
import { useState } from 'preact/hooks'

import { clusterPath } from '../api/kinds.ts'
import { loadProjects, type Project } from '../api/projects.ts'
import { readPages } from '../api/read-pages.ts'
import { RequestError } from '../api/request.ts'
import { session } from '../browser/session.ts'
import { LoadedView } from '../parts/loaded-view.tsx'
import { Notice } from '../parts/notice.tsx'
import { useLoaded } from '../parts/use-loaded.ts'
import type { ServerViewProps } from '../parts/view-props.ts'
import { ClusterSelect } from './cluster-select.tsx'
import { loadMembers } from './members.ts'
import { type OwnRights, ownRights } from './own-rights.ts'
import { Namespaces, ProjectBox } from './project-box.tsx'
import { type OpenProjectDialog, ProjectDialog } from './project-dialogs.tsx'
import { loadRoles } from './roles.ts'

export function ProjectsView({ item }: ServerViewProps): VNode {
  return (
    <>
      <ClusterSelect view="projects" cluster={item} />
      {item === '' ? (
        <Notice title="Choose a cluster" text="A project is a group of namespaces of a cluster, and has members." />
      ) : (
        <ProjectsOf key={item} cluster={item} />
      )}
    </>
  )
}

interface Found {
  readonly projects: readonly Project[]
  /** Undefined if the user may not list them, or the cluster cannot be reached. */
  readonly others: readonly string[] | undefined
  readonly rights: OwnRights
}

async function load(cluster: string, signal: AbortSignal): Promise<Found> {
  const [projects, members, roles, namespaces] = await Promise.all([
    loadProjects(cluster, signal),
    loadMembers(cluster, signal),
    loadRoles(signal),
    loadNamespaces(cluster, signal),
  ])
  const taken = new Set(projects.flatMap(({ spec }) => spec.namespaces ?? []))
  const user = session.value?.user ?? { name: '', username: '' }
  return {
    projects,
    others: namespaces?.filter((name) => !taken.has(name)),
    rights: ownRights(user, members, roles),
  }
}

/** Owners of a project may not list the namespaces of the cluster. */
async function loadNamespaces(cluster: string, signal: AbortSignal): Promise<readonly string[] | undefined> {
  const plan = { path: clusterPath(cluster, '/api/v1/namespaces'), limit: 500, maxPages: 10 }
  try {
    return (await readPages({ ...plan, keep: ({ metadata }) => [metadata.name ?? ''] }, signal)).items
  } catch (error) {
    if (error instanceof RequestError) return undefined
    throw error
  }
}

function ProjectsOf({ cluster }: { readonly cluster: string }): VNode {
  const found = useLoaded(cluster, (signal) => load(cluster, signal))
  return (
    <LoadedView of={found} name="projects of this cluster">
      {(value) => <Projects cluster={cluster} found={value} reload={found.reload} />}
    </LoadedView>
  )
}

interface ProjectsProps {
  readonly cluster: string
  readonly found: Found
  readonly reload: () => void
}

function Projects({ cluster, found, reload }: ProjectsProps): VNode {
  const { projects, others, rights } = found
  const [dialog, open] = useState<OpenProjectDialog>()
  return (
    <>
      <div class="page-head">
        <span class="state">{projects.length === 1 ? '1 project' : `${projects.length} projects`}</span>
        <span class="bar-space" />
        {rights('create', 'projects') && (
          <button type="button" class="primary" onClick={() => open({ type: 'create' })}>
            Create a project
          </button>
        )}
      </div>
      {projects.length === 0 && (
        <Notice title="There are no projects here" text="The server shows the projects in which you have a role." />
      )}
      <div class="boxes">
        {projects.map((project) => (
          <ProjectBox key={project.metadata.name} {...{ cluster, project, rights, open }} />
        ))}
        {others !== undefined && others.length > 0 && (
          <section class="box">
            <h2>Without a project</h2>
            <p class="muted">They belong to the owners of the cluster.</p>
            <Namespaces
              cluster={cluster}
              names={others}
              move={rights('manage', 'namespaces') ? (name) => open({ type: 'move', name, project: '' }) : undefined}
            />
          </section>
        )}
      </div>
      {dialog !== undefined && (
        <ProjectDialog
          {...{ cluster, dialog, rights }}
          projects={projects}
          close={() => {
            open(undefined)
            reload()
          }}
        />
      )}
    </>
  )
}
