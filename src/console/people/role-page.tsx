/** One role with its rules, and what can be done with it. */
import type { VNode } from 'preact'
import { useState } from 'preact/hooks'

import { hasRight } from '../browser/session.ts'
import { ConfirmDialog } from '../forms/confirm-dialog.tsx'
import { Notice } from '../parts/notice.tsx'
import { RulesTable } from '../rights/rules-table.tsx'
import { go, Link } from '../routing/router.tsx'
import { RoleDialog } from './role-form.tsx'
import { changeRole, deleteRole, isCustom, type Scope, type ServerRole, titleOfRole } from './roles.ts'

export interface RolePageProps {
  readonly name: string
  /** Undefined: there is none of this name. */
  readonly role: ServerRole | undefined
  readonly reload: () => void
}

export function RolePage({ name, role, reload }: RolePageProps): VNode {
  if (role === undefined)
    return (
      <Notice title="This role does not exist" text={`There is no role "${name}".`}>
        <AllLink />
      </Notice>
    )
  const { spec } = role
  return (
    <>
      <p class="crumbs">
        <AllLink />
      </p>
      <div class="page-head">
        <h2>
          <bdi>{titleOfRole(role)}</bdi>
        </h2>
        <span class="muted">{name}</span>
        <span class="bar-space" />
        {hasRight('manage roles') && <RoleActions role={role} reload={reload} />}
      </div>
      {spec.description !== undefined && <p class="text">{spec.description}</p>}
      <p>{WHERE[spec.scope]}</p>
      {spec.isDefault === true && <p>New users get it.</p>}
      {spec.inherits !== undefined && (
        <p>
          Members also have all rights of the ClusterRole <bdi>{spec.inherits}</bdi> of the cluster.
        </p>
      )}
      {spec.rules.length > 0 ? (
        <>
          <RulesTable label="Rules" rules={spec.rules} />
          <p class="muted">
            Rules of the group management.hyperkube.io are rights at this server. All others hold in the clusters.
          </p>
        </>
      ) : (
        <p class="muted">It has no rules of its own.</p>
      )}
    </>
  )
}

const WHERE: Readonly<Record<Scope, string>> = {
  global: 'Members have it in this server.',
  cluster: 'Members have it in one cluster.',
  project: 'Members have it in the namespaces of one project.',
}

function AllLink(): VNode {
  return <Link to={{ page: 'server-view', view: 'roles', item: '' }}>All roles</Link>
}

type OpenDialog = 'change' | 'default' | 'delete'

interface RoleActionsProps {
  readonly role: ServerRole
  readonly reload: () => void
}

/** The server restores built-in roles. Only whether new users get them can change. */
function RoleActions({ role, reload }: RoleActionsProps): VNode {
  const [dialog, setDialog] = useState<OpenDialog>()
  const close = (): void => {
    setDialog(undefined)
    reload()
  }
  return (
    <div class="actions">
      {role.spec.scope === 'global' && (
        <button type="button" onClick={() => setDialog('default')}>
          {role.spec.isDefault === true ? 'Not for new users' : 'Give to new users'}
        </button>
      )}
      {isCustom(role) && (
        <>
          <button type="button" onClick={() => setDialog('change')}>
            Change
          </button>
          <button type="button" class="danger" onClick={() => setDialog('delete')}>
            Delete
          </button>
        </>
      )}
      {dialog === 'change' && <RoleDialog role={role} close={close} />}
      {dialog === 'default' && <DefaultDialog role={role} close={close} />}
      {dialog === 'delete' && <DeleteDialog role={role} close={close} />}
    </div>
  )
}

interface DialogProps {
  readonly role: ServerRole
  readonly close: () => void
}

function DefaultDialog({ role, close }: DialogProps): VNode {
  const { isDefault = false } = role.spec
  return (
    <ConfirmDialog
      title={isDefault ? 'Not for new users' : 'Give to new users'}
      action="Save"
      run={() => changeRole(role.metadata.name, { isDefault: !isDefault })}
      close={close}
    >
      <p>
        {isDefault
          ? `Users that are created from now on do not get the role ${titleOfRole(role)}. Others keep it.`
          : `Users that are created from now on get the role ${titleOfRole(role)}.`}
      </p>
    </ConfirmDialog>
  )
}

function DeleteDialog({ role, close }: DialogProps): VNode {
  const remove = async (): Promise<void> => {
    await deleteRole(role.metadata.name)
    go({ page: 'server-view', view: 'roles', item: '' })
  }
  return (
    <ConfirmDialog title={`Delete the role ${titleOfRole(role)}`} action="Delete" run={remove} close={close}>
      <p>The server refuses this as long as members have the role.</p>
    </ConfirmDialog>
  )
}
