/** One project: its description, its namespaces, and what the user may do with them. */
import type { VNode } from 'preact'

import type { Project } from '../api/projects.ts'
import { Link } from '../routing/router.tsx'
import type { OwnRights } from './own-rights.ts'
import type { OpenProjectDialog } from './project-dialogs.tsx'

export interface ProjectBoxProps {
  readonly cluster: string
  readonly project: Project
  readonly rights: OwnRights
  readonly open: (dialog: OpenProjectDialog) => void
}

export function ProjectBox({ cluster, project, rights, open }: ProjectBoxProps): VNode {
  const { metadata, spec } = project
  const may = (verb: 'create' | 'manage', resource: string): boolean => rights(verb, resource, metadata.name)
  return (
    <section class="box" aria-label={`Project ${spec.displayName}`}>
      <h2>
        <bdi>{spec.displayName}</bdi>
      </h2>
      {spec.description !== undefined && <p class="text">{spec.description}</p>}
      <Namespaces
        cluster={cluster}
        names={spec.namespaces ?? []}
        move={may('manage', 'namespaces') ? (name) => open({ type: 'move', name, project: metadata.name }) : undefined}
      />
      <div class="form-actions">
        {may('create', 'namespaces') && (
          <button type="button" onClick={() => open({ type: 'namespace', project })}>
            Create a namespace
          </button>
        )}
        {may('manage', 'projects') && (
          <>
            <button type="button" onClick={() => open({ type: 'change', project })}>
              Change
            </button>
            <button type="button" class="danger" onClick={() => open({ type: 'delete', project })}>
              Delete
            </button>
          </>
        )}
      </div>
    </section>
  )
}

export interface NamespacesProps {
  readonly cluster: string
  readonly names: readonly string[]
  /** Undefined: the user may not move them. */
  readonly move: ((name: string) => void) | undefined
}

export function Namespaces({ cluster, names, move }: NamespacesProps): VNode {
  if (names.length === 0) return <p class="muted">No namespaces.</p>
  return (
    <ul class="name-list">
      {names.map((name) => (
        <li key={name}>
          <Link to={{ page: 'list', cluster, kind: PODS }} query={{ ns: name }} title={`Pods of ${name}`}>
            {name}
          </Link>
          {move && (
            <button type="button" class="quiet" aria-label={`Move ${name}`} onClick={() => move(name)}>
              Move
            </button>
          )}
        </li>
      ))}
    </ul>
  )
}

const PODS = { group: '', version: 'v1', plural: 'pods' } as const
