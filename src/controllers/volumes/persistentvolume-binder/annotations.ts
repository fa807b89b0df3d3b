/** Reads and writes annotations of claims and volumes for the binder and provisioners. Pure. */
import type { ObjectMeta } from '#meta/object.ts'
import type { Annotations } from '#model/volumes/binding.ts'
import { driverOf } from '#model/volumes/csi-migration.ts'

export const PROVISIONED_BY = 'pv.kubernetes.io/provisioned-by'
export const MIGRATED_TO = 'pv.kubernetes.io/migrated-to'
export const STORAGE_PROVISIONER = 'volume.kubernetes.io/storage-provisioner'
const OLD_STORAGE_PROVISIONER = 'volume.beta.kubernetes.io/storage-provisioner'

/** Finalizers of volumes with policy Delete: of this controller, and of external provisioners. */
export const IN_TREE_FINALIZER = 'kubernetes.io/pv-controller'
const EXTERNAL_FINALIZER = 'external-provisioner.volume.kubernetes.io/finalizer'

/** Adds the CSI driver that replaces an in-tree plugin; returns the same annotations if they are complete. */
export function migrated(annotations: Annotations, provisioner: string | undefined): Annotations {
  if (provisioner === undefined) return annotations
  const driver = driverOf(provisioner)
  const { [MIGRATED_TO]: updated, ...rest } = annotations
  if ((updated ?? '') === (driver ?? '')) return annotations
  return driver === undefined ? rest : { ...rest, [MIGRATED_TO]: driver }
}

export function provisionerOfClaim({ annotations = {} }: ObjectMeta): string | undefined {
  return annotations[STORAGE_PROVISIONER] ?? annotations[OLD_STORAGE_PROVISIONER]
}

/** Assigns a claim to its provisioner. */
export function provisionedBy(annotations: Annotations, provisioner: string): Annotations {
  const updated = { ...annotations, [OLD_STORAGE_PROVISIONER]: provisioner, [STORAGE_PROVISIONER]: provisioner }
  return migrated(updated, provisioner)
}

/** The finalizers of a volume of this controller's plugins; the same list if complete. */
export function deletionFinalizers(
  finalizers: readonly string[],
  provisioner: string | undefined,
  policy: string,
): readonly string[] {
  if (provisioner === undefined) return finalizers
  const without = (...names: string[]): readonly string[] =>
    finalizers.some((name) => names.includes(name)) ? finalizers.filter((name) => !names.includes(name)) : finalizers
  if (driverOf(provisioner) !== undefined) return without(IN_TREE_FINALIZER)
  if (!provisioner.startsWith('kubernetes.io/')) return finalizers
  if (policy !== 'Delete') return without(IN_TREE_FINALIZER, EXTERNAL_FINALIZER)
  const rest = without(EXTERNAL_FINALIZER)
  return rest.includes(IN_TREE_FINALIZER) ? rest : [...rest, IN_TREE_FINALIZER]
}
