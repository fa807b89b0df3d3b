/** The users of the server: all in a table, or one of them. */
import type { VNode } from 'preact'
import { useState } from 'preact/hooks'

import { AgeText } from '../parts/age-text.tsx'
import { LoadedView } from '../parts/loaded-view.tsx'
import { PlainTable } from '../parts/plain-table.tsx'
import { useLoaded } from '../parts/use-loaded.ts'
import type { ServerViewProps } from '../parts/view-props.ts'
import { Link } from '../routing/router.tsx'
import { CreateUserDialog } from './user-dialogs.tsx'
import { UserPage } from './user-page.tsx'
import { loadUsers, type ServerUser, stateOfUser } from './users.ts'

export function UsersView({ item }: ServerViewProps): VNode {
  const users = useLoaded('users', loadUsers)
  return (
    <LoadedView of={users} name="users">
      {(found) =>
        item === '' ? (
          <AllUsers users={found} reload={users.reload} />
        ) : (
          <UserPage name={item} user={found.find(({ name }) => name === item)} reload={users.reload} />
        )
      }
    </LoadedView>
  )
}

interface AllUsersProps {
  readonly users: readonly ServerUser[]
  readonly reload: () => void
}

function AllUsers({ users, reload }: AllUsersProps): VNode {
  const [filter, setFilter] = useState('')
  const [isCreating, setIsCreating] = useState(false)
  const shown = users.filter((user) => fits(user, filter.trim().toLowerCase()))
  return (
    <>
      <div class="page-head">
        <input
          type="search"
          class="filter"
          value={filter}
          placeholder="Filter (/)"
          aria-label="Filter users"
          aria-keyshortcuts="/"
          onInput={({ currentTarget }) => setFilter(currentTarget.value)}
        />
        <span class="state">{shown.length === users.length ? users.length : `${shown.length} of ${users.length}`}</span>
        <span class="bar-space" />
        <button type="button" class="primary" onClick={() => setIsCreating(true)}>
          Create a user
        </button>
      </div>
      <PlainTable
        label="Users"
        columns={['Username', 'Name', 'State', 'Log-ins with', 'Last log-in', 'Id']}
        rows={shown}
        keyOf={({ name }) => name}
        cells={cellsOf}
      />
      {isCreating && (
        <CreateUserDialog
          close={() => {
            setIsCreating(false)
            reload()
          }}
        />
      )}
    </>
  )
}

function fits({ username, displayName, name, groups }: ServerUser, filter: string): boolean {
  return [username, displayName, name, ...groups].some((text) => text.toLowerCase().includes(filter))
}

function cellsOf(user: ServerUser): readonly (VNode | string)[] {
  const { name, username, displayName, identities, lastLoginAt } = user
  const state = stateOfUser(user)
  return [
    <Link key="name" to={{ page: 'server-view', view: 'users', item: name }}>
      <bdi>{username}</bdi>
    </Link>,
    <bdi key="display">{displayName === username ? '' : displayName}</bdi>,
    <span key="state" class={`tone tone-${state.tone}`}>
      {state.text}
    </span>,
    identities.length === 0 ? 'password' : identities.map(({ provider }) => provider).join(', '),
    lastLoginAt === undefined ? (
      'never'
    ) : (
      <>
        <AgeText time={lastLoginAt} /> ago
      </>
    ),
    <span key="id" class="muted">
      {name}
    </span>,
  ]
}
