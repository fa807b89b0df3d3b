/** Volumes that are nowhere, for tests of what stands on them: every one comes, under the path a kubelet would use. */
import type { VolumeKeeper } from './volume-keeper.ts'

/** `missing` says why a volume does not come. */
export function createMemoryVolumes(missing: (volume: string) => string | undefined = () => undefined): VolumeKeeper {
  const uids = new Set<string>()
  return {
    bring: async ({ metadata: { uid = '' }, spec: { volumes = [] } }) => {
      const names = volumes.map(({ name }) => name)
      const failures = names.flatMap((name) => missing(name) ?? [])
      if (failures.length > 0) return { failures }
      uids.add(uid)
      const mounts = names.map((name) => [name, { hostPath: `/pods/${uid}/volumes/${name}`, readOnly: false }] as const)
      return { mounts: new Map(mounts) }
    },
    subPath: async ({ hostPath, subPath }) => `${hostPath}/${subPath}`,
    read: async () => '',
    leave: async (uid) => void uids.delete(uid),
    uids: async () => [...uids],
  }
}
