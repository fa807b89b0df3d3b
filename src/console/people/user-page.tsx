/** One user: account, what can be done with it, and its roles. */
import type { VNode } from 'preact'
import { useState } from 'preact/hooks'

import { session } from '../browser/session.ts'
import { ConfirmDialog } from '../forms/confirm-dialog.tsx'
import { AgeText } from '../parts/age-text.tsx'
import { Notice } from '../parts/notice.tsx'
import { go, Link } from '../routing/router.tsx'
import { PasswordDialog, RenameDialog } from './user-dialogs.tsx'
import { UserRoles } from './user-roles.tsx'
import { changeUser, deleteUser, type ServerUser, stateOfUser } from './users.ts'

export interface UserPageProps {
  readonly name: string
  /** Undefined: there is none of this name. */
  readonly user: ServerUser | undefined
  readonly reload: () => void
}

export function UserPage({ name, user, reload }: UserPageProps): VNode {
  if (user === undefined)
    return (
      <Notice title="This user does not exist" text={`There is no user "${name}".`}>
        <AllLink />
      </Notice>
    )
  const state = stateOfUser(user)
  return (
    <>
      <p class="crumbs">
        <AllLink />
      </p>
      <div class="page-head">
        <h2>
          <bdi>{user.username}</bdi>
        </h2>
        <span class={`tone tone-${state.tone}`}>{state.text}</span>
        <span class="bar-space" />
        <UserActions user={user} reload={reload} />
      </div>
      <div class="boxes">
        <Account user={user} />
        <UserRoles user={user} />
      </div>
    </>
  )
}

function AllLink(): VNode {
  return <Link to={{ page: 'server-view', view: 'users', item: '' }}>All users</Link>
}

function Account({ user }: { readonly user: ServerUser }): VNode {
  const { name, displayName, identities, groups, createdAt, lastLoginAt } = user
  const rows: readonly (readonly [label: string, value: VNode | string])[] = [
    ['Name', displayName],
    ['Id', name],
    ['Created', createdAt === undefined ? '' : <Ago time={createdAt} />],
    ['Last log-in', lastLoginAt === undefined ? 'never' : <Ago time={lastLoginAt} />],
    ['Identities', identities.map(({ provider, subject }) => `${subject} of ${provider}`).join('\n') || 'none'],
    ['Groups', groups.join('\n') || 'none'],
  ]
  return (
    <section class="box">
      <h2>Account</h2>
      <dl class="fields">
        {rows.map(([label, value]) => (
          <div key={label}>
            <dt>{label}</dt>
            <dd class="text">{typeof value === 'string' ? <bdi>{value}</bdi> : value}</dd>
          </div>
        ))}
      </dl>
    </section>
  )
}

function Ago({ time }: { readonly time: string }): VNode {
  return (
    <>
      <AgeText time={time} /> ago
    </>
  )
}

type OpenDialog = 'password' | 'rename' | 'disable' | 'delete'

interface UserActionsProps {
  readonly user: ServerUser
  readonly reload: () => void
}

/** People change their own password with the page "Account", and cannot disable or delete themselves. */
function UserActions({ user, reload }: UserActionsProps): VNode {
  const [dialog, setDialog] = useState<OpenDialog>()
  const close = (): void => {
    setDialog(undefined)
    reload()
  }
  const isSelf = user.name === session.value?.user?.name
  return (
    <div class="actions">
      <button type="button" onClick={() => setDialog('rename')}>
        Rename
      </button>
      {isSelf ? (
        <Link to={{ page: 'server-view', view: 'account', item: '' }}>Your account</Link>
      ) : (
        <>
          <button type="button" onClick={() => setDialog('password')}>
            Set a password
          </button>
          <button type="button" onClick={() => setDialog('disable')}>
            {user.disabled ? 'Enable' : 'Disable'}
          </button>
          <button type="button" class="danger" onClick={() => setDialog('delete')}>
            Delete
          </button>
        </>
      )}
      {dialog === 'password' && <PasswordDialog user={user} close={close} />}
      {dialog === 'rename' && <RenameDialog user={user} close={close} />}
      {dialog === 'disable' && <DisableDialog user={user} close={close} />}
      {dialog === 'delete' && <DeleteDialog user={user} close={close} />}
    </div>
  )
}

interface DialogProps {
  readonly user: ServerUser
  readonly close: () => void
}

function DisableDialog({ user, close }: DialogProps): VNode {
  const { name, username, disabled } = user
  const action = disabled ? 'Enable' : 'Disable'
  return (
    <ConfirmDialog
      title={`${action} ${username}`}
      action={action}
      run={() => changeUser(name, { disabled: !disabled })}
      close={close}
    >
      <p>
        {disabled
          ? 'The user can log in again. Sessions and tokens that ended do not come back.'
          : 'All sessions and API tokens of the user end at once. The user cannot log in until you enable it again.'}
      </p>
    </ConfirmDialog>
  )
}

function DeleteDialog({ user, close }: DialogProps): VNode {
  const remove = async (): Promise<void> => {
    await deleteUser(user.name)
    go({ page: 'server-view', view: 'users', item: '' })
  }
  return (
    <ConfirmDialog title={`Delete ${user.username}`} action="Delete" run={remove} close={close}>
      <p>The user loses all roles, sessions and API tokens. What the user has created in clusters stays.</p>
    </ConfirmDialog>
  )
}
