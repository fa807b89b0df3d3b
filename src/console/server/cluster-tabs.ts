/** The tabs of a cluster at the management server. Which a cluster has depends on its source and on the user. */
import type { ComponentType } from 'preact'

import type { ManagedCluster } from './clusters.ts'

export interface ClusterTabProps {
  readonly cluster: ManagedCluster
}

export interface ClusterTab {
  /** In the address. */
  readonly name: string
  readonly title: string
  readonly isOf: (cluster: ManagedCluster) => boolean
  /** Undefined: the overview. */
  readonly load?: () => Promise<ComponentType<ClusterTabProps>>
}

/** The server refuses all but owners. */
function isOwnBuild({ spec, isOwner }: ManagedCluster): boolean {
  return spec.source === 'built' && isOwner === true
}

const TABS: readonly ClusterTab[] = [
  { name: '', title: 'Overview', isOf: () => true },
  {
    name: 'machines',
    title: 'Machines',
    isOf: ({ spec }) => spec.source === 'built' || spec.source === 'imported',
    load: async () => (await import('../builds/machines-tab.tsx')).MachinesTab,
  },
  {
    name: 'operations',
    title: 'Operations',
    isOf: isOwnBuild,
    load: async () => (await import('../operations/operations-tab.tsx')).OperationsTab,
  },
  {
    name: 'file',
    title: 'Cluster file',
    isOf: isOwnBuild,
    load: async () => (await import('../builds/file-tab.tsx')).FileTab,
  },
  {
    name: 'snapshots',
    title: 'Snapshots',
    isOf: isOwnBuild,
    load: async () => (await import('../builds/snapshots-tab.tsx')).SnapshotsTab,
  },
]

export function tabsFor(cluster: ManagedCluster): readonly ClusterTab[] {
  return TABS.filter(({ isOf }) => isOf(cluster))
}
