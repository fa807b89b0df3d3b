/** How much CPU and memory a cluster and each of its nodes use, on the overview. */
import type { VNode } from 'preact'

import type { Node, Pod } from '#apis/core/v1.ts'

import { clusterPath, listPath } from '../api/kinds.ts'
import { Link } from '../routing/router.tsx'
import { RESOURCES } from './amount.ts'
import { Bar } from './bar.tsx'
import { valuesOf } from './chart-plan.ts'
import { Chart } from './chart.tsx'
import { demandOf } from './demand.ts'
import { MeterNotice } from './meter-notice.tsx'
import { type Metering, useMetering } from './meter.ts'
import { allocatableOfAll, type NodeShare, nodeShares } from './node-shares.ts'
import { type ReadObjects, useObjects } from './objects.ts'
import { NODE_METRICS } from './use-source.ts'
import { TITLES } from './use-view.tsx'

const NODES = { group: '', version: 'v1', plural: 'nodes' }
const PODS = { group: '', version: 'v1', plural: 'pods' }
const MAX_NODES = 1000
/** The requests of more pods would take the page too long to add up. */
const MAX_PODS = 2000
const MAX_ROWS = 20

export function ClusterUse({ cluster }: { readonly cluster: string }): VNode {
  const metering = useMetering(clusterPath(cluster, NODE_METRICS))
  const isMeasured = metering.reading !== undefined
  const read = (path: string): string | undefined => (isMeasured ? clusterPath(cluster, path) : undefined)
  const nodes = useObjects(read(listPath(NODES)), MAX_NODES)
  const pods = useObjects(read(listPath(PODS)), MAX_PODS)
  return (
    <section class="short-list" aria-label="Use">
      <header>
        <h2>Use</h2>
      </header>
      <MeterNotice {...metering} />
      {isMeasured && <ClusterCharts metering={metering} nodes={nodes} pods={pods} />}
      {metering.reading !== undefined && nodes !== undefined && (
        <NodeTable cluster={cluster} shares={nodeShares(metering.reading.parts, nodes.objects as readonly Node[])} />
      )}
    </section>
  )
}

interface ClusterChartsProps {
  readonly metering: Metering
  readonly nodes: ReadObjects | undefined
  readonly pods: ReadObjects | undefined
}

function ClusterCharts({ metering: { points }, nodes, pods }: ClusterChartsProps): VNode {
  const allocatable = allocatableOfAll((nodes?.isWhole === true ? nodes.objects : []) as readonly Node[])
  const { requests } = demandOf((pods?.isWhole === true ? pods.objects : []) as readonly Pod[])
  return (
    <>
      <div class="charts">
        {RESOURCES.map((resource) => (
          <Chart
            key={resource}
            title={TITLES[resource]}
            resource={resource}
            timesMs={points.map(({ timeMs }) => timeMs)}
            lines={[
              {
                name: 'Use',
                values: valuesOf(
                  points.map(({ total }) => total),
                  resource,
                ),
              },
            ]}
            marks={[
              { name: 'Requests', value: requests[resource] },
              { name: 'Allocatable', value: allocatable[resource], isWhole: true },
            ]}
          />
        ))}
      </div>
      <Missing what="Allocatable amounts of nodes" read={nodes} />
      <Missing what="Requests of pods" read={pods} />
    </>
  )
}

function Missing({ what, read }: { readonly what: string; readonly read: ReadObjects | undefined }): VNode | null {
  if (read === undefined || read.isWhole) return null
  const why = read.error === '' ? 'there are too many' : read.error
  return <p class="muted">{`${what} are not added up: ${why}.`}</p>
}

interface NodeTableProps {
  readonly cluster: string
  readonly shares: readonly NodeShare[]
}

function NodeTable({ cluster, shares }: NodeTableProps): VNode {
  return (
    <>
      <div class="scroll" tabIndex={0} role="region" aria-label="Use of nodes">
        <table class="plain">
          <thead>
            <tr>
              <th scope="col">Node</th>
              <th scope="col">CPU</th>
              <th scope="col">Memory</th>
            </tr>
          </thead>
          <tbody>
            {shares.slice(0, MAX_ROWS).map(({ name, used, allocatable }) => (
              <tr key={name}>
                <td>
                  <Link to={{ page: 'object', cluster, kind: NODES, namespace: '', name, tab: '' }}>
                    <bdi>{name}</bdi>
                  </Link>
                </td>
                {RESOURCES.map((resource) => (
                  <td key={resource}>
                    <Bar resource={resource} used={used[resource]} whole={allocatable[resource]} />
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {shares.length > MAX_ROWS && (
        <p class="muted">{`The fullest ${MAX_ROWS} of ${shares.length.toLocaleString('en')} nodes`}</p>
      )}
    </>
  )
}
