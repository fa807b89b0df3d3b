/** The first page of a management server: all clusters of the user. */
import type { VNode } from 'preact'
import { useEffect, useState } from 'preact/hooks'

import { RequestError } from '../api/request.ts'
import { session } from '../browser/session.ts'
import { every } from '../browser/time.ts'
import { Notice } from '../parts/notice.tsx'
import { ClusterCard } from './cluster-card.tsx'
import { ImportDialog, RemoveDialog, UpDialog } from './cluster-dialogs.tsx'
import { loadClusters, type ManagedCluster } from './clusters.ts'

/** The server writes the health of each cluster every 15 s. */
const RELOAD_MS = 5000

type OpenDialog =
  | { readonly type: 'import' }
  | { readonly type: 'up' }
  | { readonly type: 'remove'; readonly cluster: ManagedCluster }

export function ManagedClustersPage(): VNode {
  const { clusters, error, reload } = useClusters()
  const [dialog, setDialog] = useState<OpenDialog>()
  const close = (): void => {
    setDialog(undefined)
    reload()
  }
  if (clusters === undefined)
    return error === undefined ? (
      <p class="loading">Loading …</p>
    ) : (
      <Notice title="The clusters cannot be loaded" text={error.message} retry={reload} />
    )
  return (
    <section class="page">
      <header class="page-head">
        <h1>Clusters</h1>
        <button type="button" class="primary" onClick={() => setDialog({ type: 'import' })}>
          Import a cluster
        </button>
        {session.value?.user?.isAdministrator === true && (
          <button type="button" onClick={() => setDialog({ type: 'up' })}>
            Start a cluster here
          </button>
        )}
        {error && <span class="state state-stale">{error.message}</span>}
      </header>
      {clusters.length === 0 && (
        <Notice title="You have no clusters" text="Import one, or let the owner of a cluster make you a member." />
      )}
      <div class="cards">
        {clusters.map((cluster) => (
          <ClusterCard
            key={cluster.metadata.name}
            cluster={cluster}
            reload={reload}
            remove={() => setDialog({ type: 'remove', cluster })}
          />
        ))}
      </div>
      <ClusterDialog dialog={dialog} close={close} />
    </section>
  )
}

function ClusterDialog({
  dialog,
  close,
}: {
  readonly dialog: OpenDialog | undefined
  readonly close: () => void
}): VNode | null {
  if (dialog?.type === 'import') return <ImportDialog close={close} />
  if (dialog?.type === 'up') return <UpDialog close={close} />
  return dialog === undefined ? null : <RemoveDialog cluster={dialog.cluster} close={close} />
}

interface LoadedClusters {
  readonly clusters: readonly ManagedCluster[] | undefined
  readonly error: RequestError | undefined
  readonly reload: () => void
}

function useClusters(): LoadedClusters {
  const [clusters, setClusters] = useState<readonly ManagedCluster[]>()
  const [error, setError] = useState<RequestError>()
  const reload = (): void => {
    loadClusters().then(
      (loaded) => {
        setError(undefined)
        return setClusters(loaded)
      },
      (failed: unknown) => {
        if (!(failed instanceof RequestError)) throw failed
        setError(failed)
      },
    )
  }
  useEffect(() => {
    reload()
    return every(RELOAD_MS, () => {
      if (document.visibilityState === 'visible') reload()
    })
  }, [])
  return { clusters, error, reload }
}
