/** The roles of one user: those for the server, which can be changed here, and those in clusters and projects. */
import type { VNode } from 'preact'
import { useState } from 'preact/hooks'

import { clusterPath } from '../api/kinds.ts'
import { readPages } from '../api/read-pages.ts'
import { session } from '../browser/session.ts'
import { ConfirmDialog } from '../forms/confirm-dialog.tsx'
import { LoadedView } from '../parts/loaded-view.tsx'
import { PlainTable } from '../parts/plain-table.tsx'
import { useLoaded } from '../parts/use-loaded.ts'
import { Link } from '../routing/router.tsx'
import { AddMemberDialog } from './add-member.tsx'
import { type Member, removeMember, scopeOf } from './members.ts'
import { loadRoles, type ServerRole, titleOfRole } from './roles.ts'
import type { ServerUser } from './users.ts'

/** The management API has the Members of all clusters in one list. */
const PATH = clusterPath('local', '/apis/management.hyperkube.io/v1/members')

interface Found {
  readonly members: readonly Member[]
  readonly isWhole: boolean
  readonly roles: readonly ServerRole[]
}

async function loadRolesOf({ name, groups }: ServerUser, signal: AbortSignal): Promise<Found> {
  const keep = (object: object): readonly Member[] => {
    const member = object as Member
    const { user, group } = member.spec
    return user === name || (group !== undefined && groups.includes(group)) ? [member] : []
  }
  const [{ items, isWhole }, roles] = await Promise.all([
    readPages({ path: PATH, keep, limit: 500, maxPages: 20 }, signal),
    loadRoles(signal),
  ])
  return { members: items, isWhole, roles }
}

export function UserRoles({ user }: { readonly user: ServerUser }): VNode {
  const found = useLoaded(user.name, (signal) => loadRolesOf(user, signal))
  return (
    <section class="box box-wide">
      <h2>Roles</h2>
      <LoadedView of={found} name="roles of the user">
        {(value) => <Table user={user} found={value} reload={found.reload} />}
      </LoadedView>
    </section>
  )
}

interface TableProps {
  readonly user: ServerUser
  readonly found: Found
  readonly reload: () => void
}

function Table({ user, found: { members, isWhole, roles }, reload }: TableProps): VNode {
  const [dialog, setDialog] = useState<'add' | Member>()
  const close = (): void => {
    setDialog(undefined)
    reload()
  }
  const titles = new Map(roles.map((role) => [role.metadata.name, titleOfRole(role)]))
  const cells = (member: Member): readonly (VNode | string | undefined)[] => [
    <RoleLink key="role" name={member.spec.role} title={titles.get(member.spec.role)} />,
    whereText(member),
    member.spec.group === undefined ? 'the user' : `the group ${member.spec.group}`,
    scopeOf(member) === 'global' && member.spec.user !== undefined ? (
      <button key="remove" type="button" class="quiet" onClick={() => setDialog(member)}>
        Remove
      </button>
    ) : undefined,
  ]
  return (
    <>
      {members.length === 0 && <p class="muted">The user has no roles.</p>}
      {members.length > 0 && (
        <PlainTable
          label="Roles of the user"
          columns={['Role', 'Where', 'Given to', 'Action']}
          rows={members}
          cells={cells}
        />
      )}
      {!isWhole && <p class="words words-busy">The server has more members than this page reads.</p>}
      <div class="form-actions">
        <button type="button" onClick={() => setDialog('add')}>
          Give a role
        </button>
      </div>
      {dialog !== undefined && <RoleDialog {...{ user, roles, dialog, close }} />}
    </>
  )
}

interface RoleDialogProps {
  readonly user: ServerUser
  readonly roles: readonly ServerRole[]
  /** A Member: to be removed. */
  readonly dialog: 'add' | Member
  readonly close: () => void
}

function RoleDialog({ user, roles, dialog, close }: RoleDialogProps): VNode {
  if (dialog === 'add')
    return (
      <AddMemberDialog title={`Give ${user.username} a role`} cluster="" user={user.name} roles={roles} close={close} />
    )
  const { role } = dialog.spec
  const known = roles.find(({ metadata }) => metadata.name === role)
  return (
    <ConfirmDialog
      title={`Remove the role ${known === undefined ? role : titleOfRole(known)}`}
      action="Remove"
      run={() => removeMember({ cluster: '' }, dialog.metadata.name)}
      close={close}
    >
      <p>{`${user.username} loses the rights of this role with the next request.`}</p>
    </ConfirmDialog>
  )
}

export function RoleLink({ name, title }: { readonly name: string; readonly title: string | undefined }): VNode {
  return (
    <Link to={{ page: 'server-view', view: 'roles', item: name }}>
      <bdi>{title ?? name}</bdi>
    </Link>
  )
}

function whereText({ spec }: Member): string {
  if (spec.project !== undefined) return `the project ${spec.project}`
  if (spec.cluster === undefined) return 'this server'
  const known = session.value?.clusters?.find(({ name }) => name === spec.cluster)
  return `the cluster ${known?.displayName ?? spec.cluster}`
}
