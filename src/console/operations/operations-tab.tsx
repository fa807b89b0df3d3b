/** The Operations of a built cluster: the list, and the one of the address. A watch keeps them fresh. */
import type { VNode } from 'preact'

import type { KubeObject } from '#meta/object.ts'

import { useLive } from '../objects/live.ts'
import { AgeText } from '../parts/age-text.tsx'
import { Notice } from '../parts/notice.tsx'
import { PlainTable } from '../parts/plain-table.tsx'
import { Link, location } from '../routing/router.tsx'
import { operationsPath } from './operation-requests.ts'
import { OperationTag } from './operation-tag.tsx'
import { OperationView } from './operation-view.tsx'
import { newestFirst, type Operation, titleOf } from './operations.ts'
import { SshKeyBox } from './ssh-key-box.tsx'

interface BuiltCluster extends KubeObject {
  readonly status?: { readonly build?: { readonly sshPublicKey?: string; readonly appliedAt?: string } }
}

export interface OperationsTabProps {
  readonly cluster: KubeObject
}

export function OperationsTab({ cluster }: OperationsTabProps): VNode {
  const name = cluster.metadata.name ?? ''
  const { objects, state } = useLive(operationsPath(name))
  const operations = newestFirst(objects as readonly Operation[])
  if (state.type === 'failed') return <Notice title="The operations cannot be shown" text={state.message} />
  if (state.type === 'loading' && operations.length === 0) return <p class="loading">Loading …</p>
  const { operation: chosen = operations[0]?.metadata.name ?? '' } = location.value.query
  return (
    <>
      <KeyToAdmit cluster={cluster} />
      {chosen === '' ? (
        <Notice title="There are no operations" text="The server makes one when the cluster file changes." />
      ) : (
        <OperationView
          key={chosen}
          cluster={name}
          name={chosen}
          version={versionOf(operations, chosen)}
          isStale={state.type === 'stale'}
        />
      )}
      {operations.length > 0 && <OperationList cluster={name} operations={operations} shown={chosen} />}
    </>
  )
}

function versionOf(operations: readonly Operation[], name: string): string {
  return operations.find(({ metadata }) => metadata.name === name)?.metadata.resourceVersion ?? ''
}

/** Until the cluster was built, its machines may not admit the key of the server yet. */
function KeyToAdmit({ cluster }: OperationsTabProps): VNode | null {
  const { build } = (cluster as BuiltCluster).status ?? {}
  if (build?.sshPublicKey === undefined || build.appliedAt !== undefined) return null
  return (
    <div class="spaced">
      <SshKeyBox publicKey={build.sshPublicKey} cluster={cluster.metadata.name ?? ''} />
    </div>
  )
}

interface OperationListProps {
  readonly cluster: string
  readonly operations: readonly Operation[]
  readonly shown: string
}

function OperationList({ cluster, operations, shown }: OperationListProps): VNode {
  return (
    <section class="box">
      <h2>All operations</h2>
      <PlainTable
        label="All operations"
        columns={['Operation', 'State', 'Started', 'Message']}
        rows={operations}
        keyOf={({ metadata }) => metadata.name ?? ''}
        cells={(operation) => [
          <Link
            to={{ page: 'server-view', view: 'clusters', item: cluster }}
            query={{ tab: 'operations', operation: operation.metadata.name ?? '' }}
            current={operation.metadata.name === shown}
          >
            {titleOf(operation)}
          </Link>,
          <OperationTag operation={operation} />,
          <AgeText time={operation.status?.startedAt ?? operation.metadata.creationTimestamp ?? ''} />,
          <span class="words">{(operation.status?.message ?? '').split('\n')[0]}</span>,
        ]}
      />
    </section>
  )
}
