/** A cluster on the first page: state, version, nodes, size, and what is wrong. */
import type { VNode } from 'preact'

import { AgeText } from '../parts/age-text.tsx'
import { LongText } from '../parts/long-text.tsx'
import { bytesText, coresText } from '../parts/sizes.ts'
import { ClusterLink, ClusterTag, DetailsLink } from './cluster-link.tsx'
import { type ManagedCluster, SOURCES, stateOf } from './clusters.ts'

interface ClusterCardProps {
  readonly cluster: ManagedCluster
}

export function ClusterCard({ cluster }: ClusterCardProps): VNode {
  const { spec } = cluster
  const { tone, causes, isReachable } = stateOf(cluster)
  return (
    <article class="card" aria-label={spec.displayName}>
      <h2>
        <ClusterLink cluster={cluster} />
        <ClusterTag cluster={cluster} />
      </h2>
      <ClusterFacts cluster={cluster} isReachable={isReachable} />
      {causes.map((cause) => (
        <p key={cause} class={`cause cause-${tone}`}>
          <LongText text={cause} name="the cause" />
        </p>
      ))}
      <p class="card-foot">
        <DetailsLink cluster={cluster}>{`Manage ${spec.displayName}`}</DetailsLink>
      </p>
    </article>
  )
}

interface ClusterFactsProps extends ClusterCardProps {
  readonly isReachable: boolean
}

function ClusterFacts({ cluster: { spec, status }, isReachable }: ClusterFactsProps): VNode {
  const { version, nodes, capacity, agent } = status ?? {}
  return (
    <dl class="facts">
      <Fact name="Source" value={SOURCES[spec.source]} />
      <Fact name="Version" value={version} />
      <Fact name="Nodes" value={nodes && nodesText(nodes)} />
      <Fact name="Size" value={sizeText(capacity)} />
      <Fact
        name="Connected"
        value={isReachable && agent?.connectedAt !== undefined && <AgeText time={agent.connectedAt} />}
      />
    </dl>
  )
}

export function nodesText({ ready, total }: { readonly ready: number; readonly total: number }): string {
  return ready === total ? `${total}, all ready` : `${ready} of ${total} ready`
}

/** `16 cores, 62 GiB`. */
export function sizeText(capacity: Readonly<Record<string, string>> | undefined): string {
  return [coresText(capacity?.['cpu']), bytesText(capacity?.['memory'])].filter(Boolean).join(', ')
}

function Fact({
  name,
  value,
}: {
  readonly name: string
  readonly value: VNode | string | false | undefined
}): VNode | null {
  return value === undefined || value === false || value === '' ? null : (
    <>
      <dt>{name}</dt>
      <dd>{value}</dd>
    </>
  )
}
