/** Asks who may do something: for a verb and a kind or path, the subjects that may, with binding and role. */
import type { VNode } from 'preact'
import { useMemo } from 'preact/hooks'

import { kindsOfCluster } from '../browser/kinds-of-cluster.ts'
import { qualified } from '../parts/kind-groups.ts'
import { NamespaceSelect } from '../parts/namespace-select.tsx'
import { Notice } from '../parts/notice.tsx'
import { PlainTable } from '../parts/plain-table.tsx'
import { QueryField } from '../parts/query-field.tsx'
import { location } from '../routing/router.tsx'
import { BindingLink, HolderLink, RoleLink, whereText } from './grant-parts.tsx'
import { RbacView } from './rbac-view.tsx'
import { type Grant, whoMay } from './rbac.ts'
import { namespaceOf, targetOf } from './target.ts'
import { useRbac } from './use-rbac.ts'

const VERBS = 'get list watch create update patch delete deletecollection impersonate bind escalate approve use'.split(
  ' ',
)

export function WhoMay({ cluster }: { readonly cluster: string }): VNode {
  const { verb = '', of = '', ns = '', name = '' } = location.value.query
  const { kinds } = kindsOfCluster(cluster).value
  const rbac = useRbac(cluster, ns)
  const target = useMemo(() => targetOf(of, kinds), [of, kinds])
  const found = useMemo(() => {
    if (target === undefined || verb === '') return []
    return whoMay(rbac.grants, { ...target, verb, name }, namespaceOf(target, kinds, { namespace: ns, name }))
  }, [rbac.grants, target, verb, name, ns])
  return (
    <>
      <form class="questions" aria-label="Who may" onSubmit={(event) => event.preventDefault()}>
        <QueryField query="verb" label="Verb" value={verb} choices={VERBS} />
        <QueryField query="of" label="Kind or path" value={of} choices={kinds.map((kind) => qualified(kind))} />
        <QueryField query="name" label="Name (empty: all)" value={name} />
        <label class="field">
          Namespace
          <NamespaceSelect cluster={cluster} namespace={ns} />
        </label>
      </form>
      <RbacView rbac={rbac}>
        {verb === '' || target === undefined ? (
          <Notice
            title="Choose a verb and a kind"
            text="For example get and secrets, create and pods/exec, or get and /metrics."
          />
        ) : (
          <Subjects cluster={cluster} grants={found} question={[verb, of, name].join(' ').trim()} />
        )}
      </RbacView>
    </>
  )
}

interface SubjectsProps {
  readonly cluster: string
  readonly grants: readonly Grant[]
  /** `get secrets`. */
  readonly question: string
}

function Subjects({ cluster, grants, question }: SubjectsProps): VNode {
  if (grants.length === 0)
    return <Notice title="No role allows it" text={`No binding gives anyone the right to ${question} here.`} />
  return (
    <>
      <p class="state" role="status">
        {grants.length === 1 ? '1 subject' : `${grants.length} subjects`}
      </p>
      <PlainTable
        label="Subjects"
        columns={['Kind', 'Subject', 'In', 'By', 'With']}
        rows={grants}
        cells={(grant) => [
          grant.holder.kind,
          <HolderLink key="who" cluster={cluster} holder={grant.holder} />,
          whereText(grant),
          <BindingLink key="by" cluster={cluster} grant={grant} />,
          <RoleLink key="with" cluster={cluster} grant={grant} />,
        ]}
      />
    </>
  )
}
