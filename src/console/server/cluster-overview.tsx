/** The overview of a managed cluster: what is wrong, facts, conditions, agent and endpoint. */
import type { VNode } from 'preact'

import { conditionsOf } from '../objects/conditions.ts'
import { bytesText, coresText } from '../parts/sizes.ts'
import type { Tone } from '../parts/tone.ts'
import { SectionView } from '../summary/section-view.tsx'
import { type Cell, fields, type Section, since, table } from '../summary/section.ts'
import { nodesText } from './cluster-card.tsx'
import type { ClusterTabProps } from './cluster-tabs.ts'
import { isProblem, LOCAL_CLUSTER, type ManagedCluster, SOURCES, stateOf } from './clusters.ts'
import { EndpointBox } from './endpoint-box.tsx'

export function ClusterOverview({ cluster }: ClusterTabProps): VNode {
  const { causes, tone } = stateOf(cluster)
  return (
    <div class="boxes">
      {causes.length > 0 && tone !== 'good' && (
        <section class={`why why-${tone}`}>
          <h2>Why</h2>
          <ol>
            {causes.map((cause) => (
              <li key={cause}>{cause}</li>
            ))}
          </ol>
        </section>
      )}
      {sectionsOf(cluster).map((section) => (
        <SectionView key={section.title} cluster={LOCAL_CLUSTER} section={section} />
      ))}
      {cluster.spec.source !== 'local' && <EndpointBox cluster={cluster} />}
    </div>
  )
}

function sectionsOf(cluster: ManagedCluster): readonly Section[] {
  const { spec, status = {} } = cluster
  const { agent, build } = status
  return [
    fields('Cluster', factsOf(cluster)),
    fields('Agent', [
      ['Agent', agentName(spec)],
      ['Version', agent?.version],
      ['Address', agent?.address],
      ['Connected', agent?.disconnectedAt === undefined ? since(agent?.connectedAt) : undefined],
      ['Disconnected', since(agent?.disconnectedAt)],
    ]),
    ...table(
      'Conditions',
      ['Type', 'Status', 'Reason', 'Message', 'Since'],
      conditionsOf(cluster).map(({ type, status: value, reason, message, lastTransitionTime: time }) => [
        type,
        { text: value, tone: conditionTone(type, value) },
        reason,
        message,
        since(time === '' ? undefined : time),
      ]),
    ),
    ...table(
      'SSH host keys',
      ['Machine', 'Type', 'Fingerprint'],
      (build?.hostKeys ?? []).map(({ host, type, fingerprint }) => [host, type, fingerprint]),
    ),
  ]
}

function factsOf({ metadata, spec, status = {} }: ManagedCluster): readonly (readonly [string, Cell])[] {
  const { build, capacity, allocatable } = status
  return [
    ['Id', metadata.name],
    ['Source', SOURCES[spec.source]],
    ['Version', status.version],
    ['Nodes', status.nodes && nodesText(status.nodes)],
    ['CPU', coresText(capacity?.['cpu'])],
    ['Memory', bytesText(capacity?.['memory'])],
    ['CPU for pods', coresText(allocatable?.['cpu'])],
    ['Memory for pods', bytesText(allocatable?.['memory'])],
    ['Pods at most', capacity?.['pods']],
    ['Created', since(metadata.creationTimestamp)],
    ...upFacts(spec),
    ['Template', spec.build?.template],
    ['Plans', spec.build && (spec.build.approval === 'Automatic' ? 'applied at once' : 'wait for approval')],
    ['Last built', since(build?.appliedAt)],
  ]
}

function upFacts({ up }: ManagedCluster['spec']): readonly (readonly [string, Cell])[] {
  if (up === undefined) return []
  return [
    ['Runtime', up.runtime === 'simulated' ? 'simulated nodes, without containers' : up.runtime],
    ['Copy of', up.forkOf],
  ]
}

function agentName({ source, agent }: ManagedCluster['spec']): string | undefined {
  if (source === 'local' || source === 'up') return undefined
  return agent === 'remotedialer' ? "Rancher's cluster agent" : 'hyperkube cluster-agent'
}

function conditionTone(type: string, status: string): Tone | undefined {
  if (type === 'Pending' || type === 'Waiting') return status === 'True' ? 'busy' : undefined
  if (status === 'Unknown') return 'busy'
  return isProblem({ type, status }) ? 'bad' : 'good'
}
