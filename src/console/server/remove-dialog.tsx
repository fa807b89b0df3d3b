/** The dialogs of the removal of a cluster: what will go, and afterwards what could not be removed. */
import { type Signal, signal } from '@preact/signals'
import type { VNode } from 'preact'
import { useEffect } from 'preact/hooks'

import { RequestError } from '../api/request.ts'
import { CheckField } from '../forms/choices.tsx'
import { Dialog } from '../forms/dialog.tsx'
import { Field, Form } from '../forms/form.tsx'
import { go } from '../routing/router.tsx'
import { removeCluster } from './cluster-requests.ts'
import type { ClusterTabProps } from './cluster-tabs.ts'
import type { ManagedCluster } from './clusters.ts'

interface RemoveDialogProps extends ClusterTabProps {
  readonly close: () => void
}

export function RemoveDialog({ cluster, close }: RemoveDialogProps): VNode {
  const { metadata, spec } = cluster
  const { displayName, source } = spec
  const remove = async ({ typed = '', force }: Readonly<Record<string, string>>): Promise<void> => {
    if (LOSES_DATA.has(source) && typed.trim() !== displayName)
      throw new RequestError({ code: 400, message: `Type "${displayName}" to remove the cluster` })
    const left = await removeCluster(metadata.name ?? '', force !== undefined)
    close()
    if (left.length > 0) removal.value = { cluster, left }
    else leave(cluster)
  }
  return (
    <Dialog title={`Remove ${displayName}`} close={close}>
      <Form label={`Remove ${displayName}`} action="Remove" isDangerous cancel={close} submit={remove}>
        <p>{CONSEQUENCES[source]}</p>
        {source === 'built' && (
          <CheckField name="force" label="Give up machines that cannot be reached: they keep what they have" />
        )}
        {LOSES_DATA.has(source) && <Field name="typed" label={`Type "${displayName}" to confirm`} />}
      </Form>
    </Dialog>
  )
}

interface Removal {
  readonly cluster: ManagedCluster
  /** What the server could not remove. */
  readonly left: readonly string[]
}

/** The last one that left something, until the user has read it. The parts of the page about the cluster are gone by then. */
const removal: Signal<Removal | undefined> = signal(undefined)

export function RemovalReport(): VNode | null {
  useEffect(() => () => void (removal.value = undefined), [])
  if (removal.value === undefined) return null
  const { cluster, left } = removal.value
  const finish = (): void => {
    removal.value = undefined
    leave(cluster)
  }
  return (
    <Dialog title={`${cluster.spec.displayName} was removed`} close={finish}>
      <p>This server could not remove from the cluster:</p>
      <ul>
        {left.map((one) => (
          <li key={one}>{one}</li>
        ))}
      </ul>
      <button type="button" class="primary" onClick={finish}>
        Done
      </button>
    </Dialog>
  )
}

/** A built cluster stays until its machines are clean. */
function leave({ metadata, spec }: ManagedCluster): void {
  if (spec.source !== 'built') go({ page: 'clusters' })
  else go({ page: 'server-view', view: 'clusters', item: metadata.name ?? '' }, { tab: 'operations' })
}

const LOSES_DATA: ReadonlySet<string> = new Set(['up', 'built'])

const CONSEQUENCES = {
  local: '',
  imported:
    'This server forgets the cluster and removes its agent, roles and tokens from it. The workloads of the cluster stay.',
  up: 'The cluster and all its data are deleted.',
  built:
    'This server removes Kubernetes and all data of the cluster from its machines. Snapshots of etcd stay on the machines.',
} as const
