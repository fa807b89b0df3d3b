/** A cluster on the first page: state, version, nodes, what is wrong, and what can be done with it. */
import type { VNode } from 'preact'
import { useState } from 'preact/hooks'

import { RequestError } from '../api/request.ts'
import { Link } from '../routing/router.tsx'
import { changeCluster, loadKubeconfig, type ManagedCluster, stateOf } from './clusters.ts'

const SOURCES = {
  local: 'this server',
  imported: 'imported',
  up: 'on the machine of the server',
  built: 'built over SSH',
} as const

export interface ClusterCardProps {
  readonly cluster: ManagedCluster
  readonly reload: () => void
  readonly remove: () => void
}

export function ClusterCard({ cluster, reload, remove }: ClusterCardProps): VNode {
  const { metadata, spec } = cluster
  const state = stateOf(cluster)
  const [error, setError] = useState('')
  const run = (work: Promise<void>): void => {
    work.then(reload, (failed: unknown) => setError(failed instanceof RequestError ? failed.message : String(failed)))
  }
  const { name } = metadata
  return (
    <article class="card" aria-label={spec.displayName}>
      <h2>
        {state.isReachable ? <Link to={{ page: 'cluster', cluster: name }}>{spec.displayName}</Link> : spec.displayName}
        <span class={`tone tone-${state.tone}`}>{state.text}</span>
      </h2>
      <ClusterFacts cluster={cluster} isReachable={state.isReachable} />
      {state.causes.map((cause) => (
        <p key={cause} class="cause">
          {cause}
        </p>
      ))}
      {error !== '' && (
        <p class="form-error" role="alert">
          {error}
        </p>
      )}
      <div class="form-actions">
        {state.isReachable && (
          <button type="button" onClick={() => run(saveKubeconfig(cluster))}>
            Kubeconfig
          </button>
        )}
        {spec.source === 'up' && <UpActions cluster={cluster} run={run} />}
        {spec.source !== 'local' && (
          <button type="button" class="danger" onClick={remove}>
            Remove …
          </button>
        )}
      </div>
    </article>
  )
}

interface ClusterFactsProps {
  readonly cluster: ManagedCluster
  readonly isReachable: boolean
}

function ClusterFacts({ cluster: { spec, status }, isReachable }: ClusterFactsProps): VNode {
  const { version, nodes, capacity, agent } = status ?? {}
  return (
    <dl class="facts">
      <Fact name="Source" value={SOURCES[spec.source]} />
      <Fact name="Version" value={version} />
      <Fact name="Nodes" value={nodes && `${nodes.ready} of ${nodes.total} ready`} />
      <Fact name="CPU" value={capacity?.['cpu']} />
      <Fact name="Memory" value={capacity?.['memory']} />
      <Fact name="Connected since" value={isReachable ? agent?.connectedAt : undefined} />
    </dl>
  )
}

interface UpActionsProps {
  readonly cluster: ManagedCluster
  readonly run: (work: Promise<void>) => void
}

function UpActions({ cluster: { metadata, spec }, run }: UpActionsProps): VNode {
  const isRunning = spec.up?.running !== false
  return (
    <>
      <button type="button" onClick={() => run(changeCluster(metadata.name, isRunning ? 'stop' : 'start'))}>
        {isRunning ? 'Stop' : 'Start'}
      </button>
      <button type="button" onClick={() => run(changeCluster(metadata.name, 'fork'))}>
        Fork
      </button>
    </>
  )
}

function Fact({ name, value }: { readonly name: string; readonly value: string | undefined }): VNode | null {
  return value === undefined ? null : (
    <>
      <dt>{name}</dt>
      <dd>{value}</dd>
    </>
  )
}

async function saveKubeconfig({ metadata, spec }: ManagedCluster): Promise<void> {
  const url = URL.createObjectURL(new Blob([await loadKubeconfig(metadata.name)], { type: 'application/yaml' }))
  const link = document.createElement('a')
  link.href = url
  link.download = `${spec.displayName}.kubeconfig`
  link.click()
  URL.revokeObjectURL(url)
}
