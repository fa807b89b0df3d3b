/** Asks what a user, a group or a service account may do, and where. */
import type { VNode } from 'preact'
import { useMemo, useState } from 'preact/hooks'

import { Notice } from '../parts/notice.tsx'
import { PlainTable } from '../parts/plain-table.tsx'
import { QueryField } from '../parts/query-field.tsx'
import { location, setQuery } from '../routing/router.tsx'
import { BindingLink, RoleLink, whereText } from './grant-parts.tsx'
import { nameText, parseHolder } from './holder-text.ts'
import { RbacView } from './rbac-view.tsx'
import { type Grant, grantsTo, identityOf } from './rbac.ts'
import { ruleText } from './rule-row.ts'
import { useRbac } from './use-rbac.ts'

const KINDS = ['User', 'Group', 'ServiceAccount'] as const

export function SubjectRights({ cluster }: { readonly cluster: string }): VNode {
  const { who = 'User:', groups = '' } = location.value.query
  const at = who.indexOf(':')
  const kind = KINDS.find((one) => one === who.slice(0, at)) ?? 'User'
  const rbac = useRbac(cluster, '')
  const holder = parseHolder(who)
  const names = useMemo(() => {
    const found = rbac.grants.filter((grant) => grant.holder.kind === kind)
    return [...new Set(found.map((grant) => nameText(grant.holder)))]
  }, [rbac.grants, kind])
  const found = useMemo(() => {
    if (holder === undefined) return []
    return grantsTo(rbac.grants, identityOf(holder, groups.split(/[\s,]+/).filter(Boolean)))
  }, [rbac.grants, who, groups])
  return (
    <>
      <form class="questions" aria-label="What may a user" onSubmit={(event) => event.preventDefault()}>
        <label class="field">
          Kind
          <select value={kind} onChange={({ currentTarget }) => setQuery({ who: `${currentTarget.value}:` })}>
            {KINDS.map((one) => (
              <option key={one}>{one}</option>
            ))}
          </select>
        </label>
        <QueryField
          key={kind}
          query="who"
          label={kind === 'ServiceAccount' ? 'Namespace/name' : 'Name'}
          value={who.slice(at + 1)}
          choices={names}
          format={(text) => `${kind}:${text}`}
        />
        {kind === 'User' && <QueryField query="groups" label="Groups of the user (optional)" value={groups} />}
      </form>
      <RbacView rbac={rbac}>
        {holder === undefined ? (
          <Notice title="Choose a subject" text="The page shows all roles that bindings give it, and where." />
        ) : (
          <GrantTable cluster={cluster} grants={found} />
        )}
        {kind === 'User' && (
          <p class="muted">
            Kubernetes does not know the groups of users who are not logged in. Write those that matter.
          </p>
        )}
      </RbacView>
    </>
  )
}

interface GrantTableProps {
  readonly cluster: string
  readonly grants: readonly Grant[]
}

function GrantTable({ cluster, grants }: GrantTableProps): VNode {
  if (grants.length === 0) return <Notice title="It may do nothing" text="No binding gives it a role." />
  return (
    <PlainTable
      label="Roles of the subject"
      columns={['In', 'May', 'With', 'By', 'Given to']}
      rows={grants}
      cells={(grant) => [
        whereText(grant),
        <Rules key="may" grant={grant} />,
        <RoleLink key="with" cluster={cluster} grant={grant} />,
        <BindingLink key="by" cluster={cluster} grant={grant} />,
        <bdi key="holder">{`${grant.holder.kind} ${nameText(grant.holder)}`}</bdi>,
      ]}
    />
  )
}

/** More are folded. */
const SHOWN_RULES = 3

function Rules({ grant: { rules = [] } }: { readonly grant: Grant }): VNode {
  const [isOpen, setIsOpen] = useState(false)
  const shown = isOpen ? rules : rules.slice(0, SHOWN_RULES)
  return (
    <>
      {shown.length === 0 && 'nothing'}
      {shown.map((rule, at) => (
        <div key={at} class="text">
          {ruleText(rule)}
        </div>
      ))}
      {rules.length > SHOWN_RULES && (
        <button type="button" class="quiet" aria-expanded={isOpen} onClick={() => setIsOpen(!isOpen)}>
          {isOpen ? 'Less' : `${rules.length - SHOWN_RULES} more`}
        </button>
      )}
    </>
  )
}
