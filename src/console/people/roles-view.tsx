/** The roles of the server by scope, or one of them with its rules. */
import type { VNode } from 'preact'
import { useState } from 'preact/hooks'

import { hasRight } from '../browser/session.ts'
import { LoadedView } from '../parts/loaded-view.tsx'
import { LongText } from '../parts/long-text.tsx'
import { PlainTable } from '../parts/plain-table.tsx'
import { useLoaded } from '../parts/use-loaded.ts'
import type { ServerViewProps } from '../parts/view-props.ts'
import { ruleText } from '../rights/rule-row.ts'
import { RoleDialog } from './role-form.tsx'
import { RolePage } from './role-page.tsx'
import { isCustom, loadRoles, SCOPES, type ServerRole, titleOfRole } from './roles.ts'
import { RoleLink } from './user-roles.tsx'

export function RolesView({ item }: ServerViewProps): VNode {
  const roles = useLoaded('roles', loadRoles)
  return (
    <LoadedView of={roles} name="roles">
      {(found) =>
        item === '' ? (
          <AllRoles roles={found} reload={roles.reload} />
        ) : (
          <RolePage name={item} role={found.find(({ metadata }) => metadata.name === item)} reload={roles.reload} />
        )
      }
    </LoadedView>
  )
}

interface AllRolesProps {
  readonly roles: readonly ServerRole[]
  readonly reload: () => void
}

function AllRoles({ roles, reload }: AllRolesProps): VNode {
  const [isCreating, setIsCreating] = useState(false)
  return (
    <>
      <div class="page-head">
        <span class="muted">A role is a set of rights. Members have roles in the server, a cluster or a project.</span>
        <span class="bar-space" />
        {hasRight('manage roles') && (
          <button type="button" class="primary" onClick={() => setIsCreating(true)}>
            Create a role
          </button>
        )}
      </div>
      {SCOPES.map(([scope, title]) => (
        <section key={scope} class="role-scope">
          <h2>{`Roles for ${title}`}</h2>
          <PlainTable
            label={`Roles for ${title}`}
            columns={['Role', 'Id', 'Rights', 'Kind', ...(scope === 'global' ? ['New users'] : [])]}
            rows={roles.filter(({ spec }) => spec.scope === scope)}
            keyOf={({ metadata }) => metadata.name}
            cells={cellsOf}
          />
        </section>
      ))}
      {isCreating && (
        <RoleDialog
          close={() => {
            setIsCreating(false)
            reload()
          }}
        />
      )}
    </>
  )
}

function cellsOf(role: ServerRole): readonly (VNode | string)[] {
  const { metadata, spec } = role
  return [
    <RoleLink key="role" name={metadata.name} title={titleOfRole(role)} />,
    <span key="id" class="muted">
      {metadata.name}
    </span>,
    <LongText key="rights" text={rightsText(role)} name="rights" />,
    <span key="kind" class="no-wrap">
      {isCustom(role) ? 'custom' : 'built-in'}
    </span>,
    ...(spec.scope === 'global' ? [spec.isDefault === true ? 'get it' : ''] : []),
  ]
}

/** Of so many rules in a row of the table. */
const MAX_RULES = 2

function rightsText({ spec: { rules, inherits, description } }: ServerRole): string {
  if (description !== undefined) return description
  const inherited = inherits === undefined ? [] : [`all of the ClusterRole ${inherits}`]
  const more = rules.length > MAX_RULES ? [`${rules.length - MAX_RULES} more`] : []
  return [...inherited, ...rules.slice(0, MAX_RULES).map((rule) => ruleText(rule)), ...more].join('; ') || 'none'
}
