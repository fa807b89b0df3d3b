/** The members of the server, or of one cluster and its projects: who has which role. */
import type { VNode } from 'preact'
import { useState } from 'preact/hooks'

import { loadProjects, type Project } from '../api/projects.ts'
import { hasRight, session } from '../browser/session.ts'
import { ConfirmDialog } from '../forms/confirm-dialog.tsx'
import { LoadedView } from '../parts/loaded-view.tsx'
import { Notice } from '../parts/notice.tsx'
import { PlainTable } from '../parts/plain-table.tsx'
import { useLoaded } from '../parts/use-loaded.ts'
import type { ServerViewProps } from '../parts/view-props.ts'
import { Link } from '../routing/router.tsx'
import { AddMemberDialog } from './add-member.tsx'
import { ClusterSelect } from './cluster-select.tsx'
import { loadMembers, type Member, removeMember } from './members.ts'
import { type OwnRights, ownRights } from './own-rights.ts'
import { loadRoles, type ServerRole, titleOfRole } from './roles.ts'
import { RoleLink } from './user-roles.tsx'
import { loadUsers, type ServerUser } from './users.ts'

export function MembersView({ item }: ServerViewProps): VNode {
  const offersServer = hasRight('manage members')
  return (
    <>
      <ClusterSelect view="members" cluster={item} {...(offersServer && { noCluster: 'This server' })} />
      {item === '' && !offersServer ? (
        <Notice title="Choose a cluster" text="The members of the server itself are for users who manage them." />
      ) : (
        <MembersOf key={item} cluster={item} />
      )}
    </>
  )
}

interface Found {
  readonly members: readonly Member[]
  readonly roles: readonly ServerRole[]
  readonly projects: readonly Project[]
  /** Undefined if the user may not list them. */
  readonly users: readonly ServerUser[] | undefined
}

async function load(cluster: string, signal: AbortSignal): Promise<Found> {
  const [members, roles, projects, users] = await Promise.all([
    loadMembers(cluster, signal),
    loadRoles(signal),
    cluster === '' ? [] : loadProjects(cluster, signal),
    hasRight('manage users') ? loadUsers(signal) : undefined,
  ])
  return { members, roles, projects, users }
}

function MembersOf({ cluster }: { readonly cluster: string }): VNode {
  const found = useLoaded(cluster, (signal) => load(cluster, signal))
  return (
    <LoadedView of={found} name={cluster === '' ? 'members of this server' : 'members of this cluster'}>
      {(value) => <MemberTable cluster={cluster} found={value} reload={found.reload} />}
    </LoadedView>
  )
}

interface MemberTableProps {
  readonly cluster: string
  readonly found: Found
  readonly reload: () => void
}

function MemberTable({ cluster, found, reload }: MemberTableProps): VNode {
  const [dialog, setDialog] = useState<'add' | Member>()
  const close = (): void => {
    setDialog(undefined)
    reload()
  }
  const { members, roles, projects } = found
  const user = session.value?.user ?? { name: '', username: '' }
  const rights = ownRights(user, members, roles)
  const may = (project?: string): boolean => mayManage(cluster, rights, project)
  const managed = projects.filter(({ metadata }) => may(metadata.name))
  return (
    <>
      <div class="page-head">
        <span class="state">{members.length === 1 ? '1 member' : `${members.length} members`}</span>
        <span class="bar-space" />
        {(may() || managed.length > 0) && (
          <button type="button" class="primary" onClick={() => setDialog('add')}>
            Add a member
          </button>
        )}
      </div>
      {members.length === 0 && <Notice title="There are no members" text="Members get a role here." />}
      {members.length > 0 && (
        <PlainTable
          label="Members"
          columns={['Member', 'Role', 'In', 'Action']}
          rows={members}
          keyOf={({ metadata }) => metadata.name}
          cells={(member) => cellsOf(member, found, may(member.spec.project) ? () => setDialog(member) : undefined)}
        />
      )}
      {dialog === 'add' && (
        <AddMemberDialog
          title="Add a member"
          offersCluster={may()}
          projects={managed}
          users={found.users}
          {...{ cluster, roles, close }}
        />
      )}
      {typeof dialog === 'object' && <RemoveDialog cluster={cluster} member={dialog} found={found} close={close} />}
    </>
  )
}

function mayManage(cluster: string, rights: OwnRights, project?: string): boolean {
  return cluster === '' ? hasRight('manage members') : rights('manage', 'members', project)
}

function cellsOf(
  member: Member,
  found: Found,
  remove: (() => void) | undefined,
): readonly (VNode | string | undefined)[] {
  const { role, project, cluster } = member.spec
  const titles = found.roles.filter(({ metadata }) => metadata.name === role).map(titleOfRole)
  const inside = found.projects.find(({ metadata }) => metadata.name === project)
  return [
    <Subject key="subject" member={member} users={found.users} />,
    <RoleLink key="role" name={role} title={titles[0]} />,
    project !== undefined
      ? `the project ${inside?.spec.displayName ?? project}`
      : cluster === undefined
        ? 'this server'
        : 'the whole cluster',
    remove && (
      <button key="remove" type="button" class="quiet" onClick={remove}>
        Remove
      </button>
    ),
  ]
}

interface SubjectProps {
  readonly member: Member
  readonly users: readonly ServerUser[] | undefined
}

function Subject({ member: { spec }, users }: SubjectProps): VNode {
  if (spec.user === undefined) return <bdi>{`Group ${spec.group ?? ''}`}</bdi>
  const known = users?.find(({ name }) => name === spec.user)
  if (known === undefined) return <bdi>{nameOf(spec.user)}</bdi>
  return (
    <Link to={{ page: 'server-view', view: 'users', item: spec.user }}>
      <bdi>{known.username}</bdi>
    </Link>
  )
}

function nameOf(user: string): string {
  const own = session.value?.user
  return own?.name === user ? `${own.username} (you)` : user
}

interface RemoveDialogProps {
  readonly cluster: string
  readonly member: Member
  readonly found: Found
  readonly close: () => void
}

function RemoveDialog({ cluster, member, found, close }: RemoveDialogProps): VNode {
  const { user = '', group, role } = member.spec
  const known = found.users?.find(({ name }) => name === user)
  const who = group === undefined ? (known?.username ?? nameOf(user)) : `the group ${group}`
  const title = found.roles.filter(({ metadata }) => metadata.name === role).map(titleOfRole)[0] ?? role
  return (
    <ConfirmDialog
      title={`Remove ${who}`}
      action="Remove"
      run={() => removeMember({ cluster }, member.metadata.name)}
      close={close}
    >
      <p>{`The rights of the role ${title} end with the next request.`}</p>
    </ConfirmDialog>
  )
}
