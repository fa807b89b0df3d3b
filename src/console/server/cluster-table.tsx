/** Many clusters as a table, with a line for each. */
import type { VNode } from 'preact'

import { nodesText, sizeText } from './cluster-card.tsx'
import { ClusterLink, ClusterTag, DetailsLink } from './cluster-link.tsx'
import { type ManagedCluster, SOURCES, stateOf } from './clusters.ts'

const COLUMNS = ['Name', 'State', 'Version', 'Nodes', 'Size', 'Source', '', 'Cause']

export function ClusterTable({ clusters }: { readonly clusters: readonly ManagedCluster[] }): VNode {
  return (
    <div class="short-rows" role="region" aria-label="Clusters" tabIndex={0}>
      <table>
        <thead>
          <tr>
            {COLUMNS.map((column) => (
              <th key={column} scope="col">
                {column === '' ? <span class="unseen">Manage</span> : column}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {clusters.map((cluster) => (
            <ClusterRow key={cluster.metadata.name} cluster={cluster} />
          ))}
        </tbody>
      </table>
    </div>
  )
}

function ClusterRow({ cluster }: { readonly cluster: ManagedCluster }): VNode {
  const { spec, status } = cluster
  const { causes } = stateOf(cluster)
  return (
    <tr>
      <td>
        <ClusterLink cluster={cluster} />
      </td>
      <td>
        <ClusterTag cluster={cluster} />
      </td>
      <td>{status?.version}</td>
      <td>{status?.nodes && nodesText(status.nodes)}</td>
      <td>{sizeText(status?.capacity)}</td>
      <td>{SOURCES[spec.source]}</td>
      <td>
        <DetailsLink cluster={cluster}>
          Manage<span class="unseen">{` ${spec.displayName}`}</span>
        </DetailsLink>
      </td>
      <td class="cluster-cause" title={causes.join('\n')}>
        {causes[0]}
      </td>
    </tr>
  )
}
