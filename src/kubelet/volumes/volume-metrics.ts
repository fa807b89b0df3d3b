/** Metrics of volumes: their number, and the usage of those behind claims. */
import type { VolumeFsUse } from '../machine/node-stats.ts'
import type { KubeletMeters } from '../metrics/kubelet-families.ts'
import type { VolumeManager } from './volume-manager.ts'

const FIGURES = {
  kubelet_volume_stats_available_bytes: ({ availableBytes }) => availableBytes,
  kubelet_volume_stats_capacity_bytes: ({ capacityBytes }) => capacityBytes,
  kubelet_volume_stats_health_status_abnormal: ({ isAbnormal }) =>
    isAbnormal === undefined ? undefined : Number(isAbnormal),
  kubelet_volume_stats_inodes: ({ inodes }) => inodes,
  kubelet_volume_stats_inodes_free: ({ inodesFree }) => inodesFree,
  kubelet_volume_stats_inodes_used: ({ inodesUsed }) => inodesUsed,
  kubelet_volume_stats_used_bytes: ({ usedBytes }) => usedBytes,
} as const satisfies Readonly<Record<string, (use: VolumeFsUse) => number | undefined>>

/** `measured` returns the usage measured before the scrape. */
export function registerVolumeMetrics(
  meters: KubeletMeters,
  volumeManager: Pick<VolumeManager, 'counts'>,
  measured: () => readonly VolumeFsUse[],
): void {
  for (const name of Object.keys(FIGURES) as (keyof typeof FIGURES)[]) {
    const read: (use: VolumeFsUse) => number | undefined = FIGURES[name]
    meters.collect(name, (emit) => {
      for (const use of onePerClaim(measured())) {
        const value = read(use)
        if (value !== undefined) emit(value, use.claim?.namespace ?? '', use.claim?.name ?? '')
      }
    })
  }
  meters.collect('volume_manager_total_volumes', (emit) => {
    for (const { plugin, desired, actual } of volumeManager.counts?.() ?? []) {
      emit(desired, plugin, 'desired_state_of_world')
      if (actual > 0) emit(actual, plugin, 'actual_state_of_world')
    }
  })
}

/** Several pods may use the same claim. */
function onePerClaim(volumes: readonly VolumeFsUse[]): Iterable<VolumeFsUse> {
  const claimed = volumes.filter(({ claim }) => claim !== undefined)
  return new Map(claimed.map((use) => [`${use.claim?.namespace}/${use.claim?.name}`, use])).values()
}
