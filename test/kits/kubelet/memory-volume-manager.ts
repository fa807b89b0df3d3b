/** An in-memory volume manager for tests: mounting every volume succeeds, at the path that a kubelet would use. */
import type { VolumeManager } from '#kubelet/volumes/volume-manager.ts'

/** `missing` returns why a volume cannot be mounted. */
export function createMemoryVolumeManager(
  missing: (volume: string) => string | undefined = () => undefined,
): VolumeManager {
  const uids = new Set<string>()
  return {
    mount: async ({ metadata: { uid = '' }, spec: { volumes = [] } }) => {
      const names = volumes.map(({ name }) => name)
      const failures = names.flatMap((name) => missing(name) ?? [])
      if (failures.length > 0) return { failures }
      uids.add(uid)
      const mounts = names.map((name) => [name, { hostPath: `/pods/${uid}/volumes/${name}`, readOnly: false }] as const)
      return { mounts: new Map(mounts) }
    },
    subPath: async ({ hostPath, subPath }) => `${hostPath}/${subPath}`,
    read: async () => '',
    unmount: async (uid) => void uids.delete(uid),
    uids: async () => [...uids],
  }
}
