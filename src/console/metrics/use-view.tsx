/** How much CPU and memory an object uses over time, against what it requests and may use. */
import type { VNode } from 'preact'

import type { Pod } from '#apis/core/v1.ts'
import type { KubeObject } from '#meta/object.ts'

import { clusterPath } from '../api/kinds.ts'
import { kubernetesKind } from '../objects/kubernetes-kind.ts'
import { RESOURCES, type Resource } from './amount.ts'
import { Chart } from './chart.tsx'
import { ContainerTable } from './container-table.tsx'
import { MAX_LINES } from './history.ts'
import { MeterNotice } from './meter-notice.tsx'
import { useMetering } from './meter.ts'
import { useObjects } from './objects.ts'
import { chartOf, type UseSource, useSourceOf } from './use-source.ts'

export interface UseViewProps {
  readonly cluster: string
  readonly object: KubeObject
}

export function UseView({ cluster, object }: UseViewProps): VNode | null {
  const source = useSourceOf(object)
  return source === undefined ? null : <Use cluster={cluster} object={object} source={source} />
}

export const TITLES: Readonly<Record<Resource, string>> = { cpu: 'CPU', memory: 'Memory' }
/** Pods of one object whose requests are added up. */
const MAX_PODS = 1000

function Use({ cluster, object, source }: UseViewProps & { readonly source: UseSource }): VNode {
  const metering = useMetering(clusterPath(cluster, source.path))
  const listed = useObjects(source.pods && clusterPath(cluster, source.pods), MAX_PODS)
  const pods = source.pods === undefined ? [object as Pod] : ((listed?.objects ?? []) as readonly Pod[])
  const { reading, points } = metering
  return (
    <section class="box box-wide" aria-label="Use">
      <h2>Use</h2>
      <MeterNotice {...metering} />
      {reading !== undefined && (
        <div class="charts">
          {RESOURCES.map((resource) => (
            <Chart key={resource} title={TITLES[resource]} {...chartOf(resource, object, { points, reading, pods })} />
          ))}
        </div>
      )}
      {reading !== undefined && kubernetesKind(object) === 'Pod' && (
        <ContainerTable pod={object as Pod} parts={reading.parts} />
      )}
      {reading !== undefined && kubernetesKind(object) === 'Pod' && reading.parts.length > MAX_LINES && (
        <p class="muted">{`The charts show the first ${MAX_LINES} of ${reading.parts.length} containers.`}</p>
      )}
      {listed !== undefined && !listed.isWhole && (
        <p class="muted">
          {listed.error === ''
            ? `Requests and limits are those of the first ${listed.objects.length} pods.`
            : `Requests and limits are not known: ${listed.error}`}
        </p>
      )}
    </section>
  )
}
